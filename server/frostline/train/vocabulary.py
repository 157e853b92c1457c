"""A byte-level BPE that keeps every text as it was and knows Python's lines.

A line end and the indentation behind it are one piece, so no token straddles the begin of a
statement, where most holes are cut; digits are single, so numbers are spelled one way.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from frostline.models.tokens import Tokens

PIECES = r"\n[ \t]*| ?[A-Za-z_]+| ?[^\sA-Za-z0-9_]+|[0-9]| +|\s"

# In the order of their ids; the names are those of frostline.json.
SPECIAL = ("end", "mask", "pad", "begin", "prefix", "suffix", "middle", "expand")


def learn(texts: Iterable[str], size: int, folder: Path) -> Tokens:
    """Return a tokenizer of `size` entries learnt from `texts`, written to tokenizer.json."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    special = [AddedToken(f"<|{name}|>", special=True, normalized=False) for name in SPECIAL]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return Tokens(folder)
