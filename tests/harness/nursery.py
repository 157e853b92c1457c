"""Real worker processes in a tenth of a second: forked from one that has the model stack imported.

What each of them runs is `frostline worker`, as on any machine; only the seconds of importing torch are
spent once for all.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frostline.config import Settings

_CODE = """
import os, signal, sys
import safetensors.torch, tokenizers, torch, transformers
from transformers.models.qwen3 import modeling_qwen3
import frostline.models.registry, frostline.worker.engine
from frostline.cli import main
torch.set_num_threads(1)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os._exit(main(["worker", *line.rstrip("\\n").split("\\t")]))
    print(pid, flush=True)
"""


class Nursery:
    """Where workers come from."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def worker(self, settings: Settings, socket: Path) -> int:
        """Start a worker for these settings that listens at `socket`; return its process id."""
        words = ["--socket", str(socket), "--model", settings.model, "--device", settings.device]
        words += ["--threads", str(settings.threads), "--idle", str(settings.idle_s)]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Give a nursery; whatever came from it ends with it."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield Nursery(process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
