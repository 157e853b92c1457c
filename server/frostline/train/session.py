"""One call of the command: what was asked, put together from data, model, run and card."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec
import platformdirs
import torch

from frostline.errors import BadPlace, BadSetting
from frostline.models import registry
from frostline.models.tokens import Tokens
from frostline.train import card, corpus, data, folder, held, passes, sources
from frostline.train import evaluate as evaluation
from frostline.train import run as runs
from frostline.train.folder import Position
from frostline.train.objective import Questions
from frostline.train.run import Run
from frostline.train.show import Teller
from frostline.train.sizes import SIZES, Size, changed

# Up to so many hours the standard library is more than can be read once, and nothing is fetched.
SHORT = 0.25
# From so many hours on, compiling for a processor gives back more steps than it costs.
LONG = 0.5


class Asked(msgspec.Struct, frozen=True):
    """What a run was asked for; kept beside its checkpoint so that `--resume` need not repeat it."""

    hours: float
    steps: int
    seed: int
    packages: int
    size: str
    changes: tuple[str, ...]
    half: bool
    origin: str
    compiled: bool = False


def train(args: argparse.Namespace) -> int:
    """Train, and return the exit status."""
    if args.out is None:
        raise BadSetting("say where the model shall be written: --out DIR")
    if args.threads:
        torch.set_num_threads(args.threads)
    device = registry.device_of(args.device)
    asked, before = _asked(args, device)
    size = changed(SIZES[asked.size], asked.changes)
    with Teller(args.json) as teller:
        shard, tokens = _data(args, asked, size, teller)
        plan = replace(
            size.plan,
            hours=asked.hours,
            steps=asked.steps,
            seed=asked.seed,
            half=asked.half,
            compiled=asked.compiled,
        )
        model = _model(args, asked, size)
        run = Run(model, Questions(shard.ids, tokens, size.recipe), plan, device)
        if before is not None:
            run.restore(*folder.restore(_checkpoint(args.out, asked, before)))
        (args.out / "run.json").write_bytes(msgspec.json.encode(asked))
        done = runs.train(run, plan, args.out, teller.told)
        config = json.loads((args.out / "config.json").read_text("utf-8"))
        card.write(args.out, config, shard.facts, _training(asked, run, model, device))
        if done and args.export is not None:
            files = folder.export(args.out, args.export)
            largest = max(file.stat().st_size for file in files)
            teller.say(
                f"{args.export} holds it too, to carry: {len(files)} files, the largest {largest / 1e6:.1f} MB"
            )
        teller.say(
            f"{args.out} holds the model; figures: frostline train --evaluate {args.out}"
            if done
            else f"stopped and saved; go on with: frostline train --resume --out {args.out}"
        )
    return 0 if done else 1


def prepare(args: argparse.Namespace) -> int:
    """Fetch and write what a run with these options would learn from; return the exit status."""
    asked = _new(args, torch.device("cpu"))
    with Teller(args.json) as teller:
        shard, source = _shard(args, asked, changed(SIZES[asked.size], asked.changes), teller)
        teller.say("reading it back, to look for text that is evaluated on")
        leaking = data.leaking(shard, Tokens(source), _held(args))
        if leaking:
            raise BadPlace(
                f"{leaking} of {shard.facts.files} files in {_place(args)} hold text that is evaluated on; "
                "remove its train-*.bin to have them made anew"
            )
        teller.say(
            f"none of {shard.facts.files} files holds {corpus.GRAM} words in a row of what is evaluated on"
        )
        teller.say(
            f"{_place(args)} holds {shard.facts.tokens / 1e6:.1f} M tokens, and {source} their tokenizer; "
            "a machine that has this folder fetches nothing: frostline train --data DIR"
        )
    return 0


def _asked(args: argparse.Namespace, device: torch.device) -> tuple[Asked, Asked | None]:
    """Return what is asked for, and what the run in --out was asked for if it shall go on."""
    path = args.out / "run.json"
    if args.resume:
        if not path.is_file():
            raise BadPlace(f"there is no run in {args.out}; leave out --resume to begin one")
        before = msgspec.json.decode(path.read_bytes(), type=Asked)
        hours = before.hours if args.hours is None else args.hours
        steps = before.steps if args.steps is None else args.steps
        return msgspec.structs.replace(before, hours=hours, steps=steps), before
    if path.exists():
        raise BadPlace(f"{args.out} holds a run already; add --resume, or choose another folder")
    return _new(args, device), None


def _new(args: argparse.Namespace, device: torch.device) -> Asked:
    tiny = args.size == "tiny"
    hours = (0.01 if tiny else 1.0) if args.hours is None else args.hours
    if not args.steps and hours <= 0:
        raise BadSetting("--hours must be above 0")
    packages = args.packages
    if packages is None:
        packages = 0 if tiny or hours <= SHORT else len(sources.listed().package)
    half = args.precision == "bf16" or (
        args.precision == "auto" and not tiny and passes.half_pays(device)
    )
    changes = tuple(args.changes)
    # A slip in a name is told before anything is fetched.
    changed(SIZES[args.size], changes)
    origin = str(args.origin or "")
    compiled = args.compile == "on" or (
        args.compile == "auto" and _compiling_pays(device, hours if not args.steps else 0)
    )
    return Asked(
        hours, args.steps or 0, args.seed, packages, args.size, changes, half, origin, compiled
    )


def _compiling_pays(device: torch.device, hours: float) -> bool:
    if device.type == "cpu":
        return hours >= LONG and shutil.which(os.environ.get("CXX", "g++")) is not None
    return device.type == "cuda"


def _checkpoint(out: Path, asked: Asked, before: Asked) -> Path:
    """Return the checkpoint to go on from: a longer run than before leaves out the old decay."""
    longer = asked.hours > before.hours or asked.steps > before.steps
    stable = out / "stable"
    return stable if longer and stable.is_dir() else out / "checkpoint"


def _data(
    args: argparse.Namespace, asked: Asked, size: Size, teller: Teller
) -> tuple[data.Shard, Tokens]:
    """Return what to learn from and the tokenizer, having written the form of the model."""
    shard, source = _shard(args, asked, size, teller)
    config = (
        json.loads((source / "config.json").read_text("utf-8"))
        if asked.origin
        else passes.config(size.shape)
    )
    folder.write_form(args.out, config, source / "tokenizer.json")
    return shard, Tokens(args.out)


def _shard(
    args: argparse.Namespace, asked: Asked, size: Size, teller: Teller
) -> tuple[data.Shard, Path]:
    """Return what to learn from, and the folder that the tokenizer is in."""
    want = data.Want(asked.packages, size.characters, size.most, size.shape.vocab_size, _held(args))
    origin = _form_of(Path(asked.origin)) if asked.origin else None
    given = Tokens(origin) if origin else None
    shard, learnt = data.build(_place(args), want, given, teller.say)
    return shard, origin or learnt


def _held(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the texts of --cases, which must not be learnt."""
    return tuple(held.texts_in(args.cases)) if args.cases is not None else ()


def _place(args: argparse.Namespace) -> Path:
    """Return the folder of packages and shards, which runs share."""
    return args.data or Path(platformdirs.user_cache_dir("frostline")) / "train"


def _form_of(origin: Path) -> Path:
    """Return the folder that has the config and the tokenizer of these weights."""
    if origin.suffix == ".safetensors":
        return registry.folder_of("embedded")
    if not (origin / "config.json").is_file():
        raise BadPlace(f"{origin} holds no model to go on from")
    return origin


def _model(args: argparse.Namespace, asked: Asked, size: Size) -> Any:
    if not asked.origin:
        return passes.new(passes.config(size.shape), asked.seed)
    return passes.load(args.out / "config.json", folder.read_weights(Path(asked.origin)))


def _training(asked: Asked, run: Run, model: Any, device: torch.device) -> card.Training:
    position: Position = run.position
    return card.Training(
        origin="Went on from other weights of this form with" if asked.origin else "Trained on",
        parameters=sum(one.numel() for one in passes.tensors_of(model).values()),
        tokens=position.tokens,
        hours=position.elapsed / 3600,
        machine=_machine(device),
        losses=run.losses,
        seed=asked.seed,
    )


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"{torch.get_num_threads()} thread(s) of {platform.machine()}"


def evaluate(args: argparse.Namespace) -> int:
    """Print the table of figures, and return the exit status."""
    if args.threads:
        torch.set_num_threads(args.threads)
    device = registry.device_of(args.device)
    with Teller(args.json) as teller:
        asked = _questions(args, teller)
        found = [
            evaluation.figures(one, asked, args.seed, device, teller.say) for one in args.evaluate
        ]
    table = evaluation.table(found)
    if args.json:
        print(json.dumps([asdict(one) for one in found]))
    else:
        print(table)
    if args.write_card:
        names = card.shown(args.evaluate)
        command = f"frostline train --evaluate {names} --holes {args.holes} --seed {args.seed}"
        if args.cases is not None:
            command += f" --cases {args.cases}"
        card.write_figures(args.evaluate[0], table, command)
        print(f"the table is in {args.evaluate[0] / 'CARD.md'}", file=sys.stderr)
    return 0


def _questions(args: argparse.Namespace, teller: Teller) -> held.Asked:
    if args.cases is not None:
        return held.Kept(held.read(args.cases), args.holes)
    files = data.held_out_files(sources.listed(), _place(args) / "wheels", teller.say)
    return held.Drawn(files, args.holes, args.seed)
