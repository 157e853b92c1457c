"""Refinement from any start comes to what one token at a time writes, in as many looks or fewer."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from frostline.decoding.jacobi import AHEAD, PLAIN, NGrams, Refining, Widths, nothing
from frostline.decoding.loop import NothingFits, Step

VOCABULARY, END = 8, 0
# A model: the logits of the next token, from all that stands left of it.
Model = Callable[[tuple[int, ...]], Tensor]


def random_model(seed: int) -> Model:
    """Return a model that has an opinion of its own for every two tokens before."""
    table = torch.randn(
        VOCABULARY, VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(seed)
    )
    table[..., END] -= 2

    def model(left: tuple[int, ...]) -> Tensor:
        before = (1, 1, *left)
        return table[before[-2], before[-1]]

    return model


def reciting(text: str) -> Model:
    """Return a model that writes just this, digits for tokens."""

    def model(left: tuple[int, ...]) -> Tensor:
        return torch.eye(VOCABULARY)[int(text[len(left)]) if len(left) < len(text) else END] * 9

    return model


def refined(refining: Refining, model: Model) -> list[Step]:
    """Return the canvas after each look."""
    steps = []
    while not refining.done:
        tokens, first = refining.tokens.tolist(), refining.settled
        rows = [model(tuple(tokens[: first + row])) for row in range(refining.count)]
        steps.append(refining.answer(torch.stack(rows)))
    return steps


def anything(logits: Tensor, tokens: Tensor, first: int) -> Tensor:
    return logits


def plainly(model: Model, slots: int) -> list[int]:
    tokens: list[int] = []
    while len(tokens) < slots:
        tokens.append(int(model(tuple(tokens)).argmax()))
        if tokens[-1] == END:
            break
    return tokens + [END] * (slots - len(tokens))


def start(text: str, slots: int) -> Tensor:
    return torch.tensor([int(one) for one in text] + [END] * (slots - len(text)))


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=24),
    st.builds(Widths, *[st.integers(1, 9)] * 3),
    st.lists(st.integers(0, VOCABULARY - 1), max_size=40),
)
def test_from_any_start_by_any_guesses_it_is_the_greedy_text(
    seed: int, tokens: list[int], widths: Widths, text: list[int]
) -> None:
    model = random_model(seed)
    plain = plainly(model, len(tokens))
    for guess in (nothing, NGrams([text, plain[::-1]], text), NGrams([text], (), tokens)):
        refining = Refining(torch.tensor(tokens), anything, END, guess, widths=widths)
        steps = refined(refining, model)
        assert refining.tokens.tolist() == plain
        # A look settles one slot at the least, so it never takes more than plain decoding.
        written = plain.index(END) + 1 if END in plain else len(plain)
        assert len(steps) <= written
        assert [step.step for step in steps] == list(range(1, len(steps) + 1))


def test_an_old_text_that_is_right_settles_in_one_look_and_what_was_changed_in_a_second() -> None:
    same = Refining(start("1234567", 8), anything, END)
    assert len(refined(same, reciting("1234567"))) == 1
    other = Refining(start("1239567", 8), anything, END)
    steps = refined(other, reciting("1234567"))
    assert len(steps) == 2
    # What is settled after the first: up to the correction, and with it.
    assert steps[0].open.tolist() == [False] * 4 + [True] * 4
    assert steps[0].tokens.tolist()[:4] == [1, 2, 3, 4]


def test_text_that_moved_is_found_again_by_its_n_grams() -> None:
    text = "1234567123456"
    old = [int(one) for one in "1" + text]
    guided = Refining(start("", 14), anything, END, NGrams([old]), widths=Widths(8, 3, 1))
    assert len(refined(guided, reciting(text))) <= len(text) // 2
    plain = Refining(start("", 14), anything, END, widths=PLAIN)
    assert len(refined(plain, reciting(text))) == len(text) + 1


def test_where_the_last_guess_was_wrong_less_is_looked_at() -> None:
    guess = NGrams([[2, 4, 5, 6, 7, 1, 2]], (), old=[1, 2, 3, 4, 5])
    widths = Widths(ahead=6, careful=2, blind=1)
    refining = Refining(start("", 12), anything, END, guess, widths=widths)
    model, counts = reciting("1245671237"), []
    while not refining.done:
        counts.append(refining.count)
        tokens, first = refining.tokens.tolist(), refining.settled
        rows = [model(tuple(tokens[: first + row])) for row in range(refining.count)]
        refining.answer(torch.stack(rows))
    # The old text is wrong at its third token; what stands elsewhere leads on: two, then as many as fit.
    assert counts[:3] == [6, 2, 6]
    # Where nothing is known of what follows, one.
    assert counts[-1] == 1


def test_n_grams_prefer_the_longest_match_and_the_earlier_text() -> None:
    guess = NGrams([[1, 2, 3, 4, 5], [9, 2, 3, 7]], before=[6, 1])
    assert list(guess([2, 3])) == [4, 5]
    assert list(guess([9, 2, 3])) == [7]
    assert list(guess([5])) == []
    assert len(NGrams([list(range(50))])([3, 4])) == AHEAD


def test_what_is_shown_has_nothing_behind_its_guessed_end() -> None:
    refining = Refining(torch.tensor([1, 2, END, 5]), anything, END)
    assert refining.now.tokens.tolist() == [1, 2, END, END]
    assert refining.now.open.all()
    (step,) = refined(refining, reciting("12"))
    assert step.tokens.tolist() == [1, 2, END, END]
    assert not step.open.any()
    assert (step.confidence > 0.9).all()


def test_drawn_texts_do_not_depend_on_the_guesses_either() -> None:
    model, texts = random_model(3), set()
    for seed in range(6):
        drawn = [
            Refining(begin, anything, END, widths=widths, temperature=1.0, seed=seed)
            for begin, widths in (
                (start("", 12), PLAIN),
                (start("123", 12), Widths()),
                (start("7171", 12), Widths(3, 3, 3)),
            )
        ]
        same = {tuple(refined(one, model)[-1].tokens.tolist()) for one in drawn}
        assert len(same) == 1
        texts |= same
    assert len(texts) > 3


def test_a_slot_that_nothing_fits_ends_the_run() -> None:
    def never(logits: Tensor, tokens: Tensor, first: int) -> Tensor:
        return torch.full_like(logits, float("-inf"))

    with pytest.raises(NothingFits):
        refined(Refining(start("", 3), never, END), reciting("1"))
