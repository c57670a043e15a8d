"""From a .cu file to its machine code as text: nvcc and nvdisasm, wherever they are, and what they made before."""

import gzip
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.base import BUILD, ROOT, Failure, cuda, packages

PACKAGES = BUILD / "nvidia"  # where pip puts them, if told as HOW_TO_GET says
HOW_TO_GET = "python3 -m pip install --target build/nvidia nvidia-cuda-nvcc nvidia-cuda-nvdisasm"
KEPT = BUILD / "machine_code"
FLAGS = ["-O3", "-DNDEBUG", "-std=c++20", f"-I{ROOT / 'common'}"]  # as a chapter is compiled for a GPU
HEADERS = [ROOT / "common" / room for room in ("attention", "device")]


@dataclass(frozen=True)
class Tools:
    nvcc: str
    version: tuple[int, ...]
    nvdisasm: str

    def __str__(self) -> str:
        return f"nvcc {packages.dotted(self.version)}"


def find() -> "tuple[Tools | None, str]":
    """(the tools, "") or (None, what is missing)."""
    in_packages = sorted(str(path) for path in PACKAGES.glob("nvidia/*/bin"))
    nvcc = cuda.find_nvcc(in_packages)
    if nvcc is None:
        return None, "no nvcc"
    if nvcc.version < cuda.LOWEST_NVCC:
        return None, f"nvcc is older than {packages.dotted(cuda.LOWEST_NVCC)}"
    for place in (str(Path(nvcc.path).parent), *in_packages, None):  # None: the PATH
        nvdisasm = shutil.which("nvdisasm", path=place)
        version = nvdisasm and packages.version_of(nvdisasm, r"release ([\d.]+)")
        if nvdisasm and version and version >= nvcc.version:  # an older one misreads
            return Tools(nvcc.path, nvcc.version, nvdisasm), ""
    return None, f"no nvdisasm of {packages.dotted(nvcc.version)} or later"


def machine_code(tools: Tools, source: Path, architecture: str) -> str:
    """What nvdisasm says of the file, compiled for sm_90a or the like; kept, as nvcc takes seconds."""
    kept = KEPT / f"{source.stem}-{architecture}-{_digest(tools, source, architecture)}.gz"
    try:
        return gzip.decompress(kept.read_bytes()).decode()
    except (OSError, EOFError, ValueError):  # not there, or not whole
        pass
    text = _compiled(tools, source, architecture)
    kept.parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(gzip.compress(text.encode(), 1))
    unfinished.replace(kept)
    return text


def _compiled(tools: Tools, source: Path, architecture: str) -> str:
    with tempfile.TemporaryDirectory() as directory:
        binary = Path(directory) / "kernels.cubin"
        _said([tools.nvcc, "-cubin", f"-arch={architecture}", "-lineinfo", *FLAGS, "-o", str(binary), str(source)],
              f"{source.name} has no machine code for {architecture}")
        return disassemble(tools.nvdisasm, binary)


def disassemble(nvdisasm: str, binary: Path) -> str:
    return _said([nvdisasm, "-gi", "-c", str(binary)], f"nvdisasm cannot read {binary.name}")


def _said(command: list[str], otherwise: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it does not say why"]
        raise Failure(f"{otherwise}: {said[0]}")
    return done.stdout


def _digest(tools: Tools, source: Path, architecture: str) -> str:
    """Of all that the machine code depends on."""
    digest = hashlib.sha256(repr((tools, architecture, FLAGS, source.parts[-2:])).encode())  # as places have it
    for path in [source, *sorted(path for room in [*HEADERS, source.parent] for path in room.glob("*.h"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
