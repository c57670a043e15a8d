"""Which machine code a piece of the measurement has timed.

A chapter's machine code is known by a digest of the instructions of all its kernels, in whatever order, whatever they
are called. A change of a comment, of a chapter's host code or of another chapter leaves it as it is, and times stay
true. So a measurement can be taken over several commits.
"""

import hashlib
import re
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.base import build, cuda

_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/ .*|^\s+/\* 0x[0-9a-f]{16} \*/$", re.M)
# A name that only one source knows has a number made of that source in it; an instruction may name what it calls.
_NUMBER_OF_SOURCE = re.compile(r"_(?:GLOBAL__N_|INTERNAL)_+[0-9a-f]{8}_\w*")
_DIGITS = 16


def of(chapters: Iterable[str], directory: Path) -> dict[str, str]:
    """{chapter: digest} of those that have been built there; nothing if CUDA's cuobjdump is not beside nvcc."""
    nvcc = cuda.find_nvcc()
    reader = Path(nvcc.path).with_name("cuobjdump") if nvcc else None
    if reader is None or not reader.exists():
        return {}
    objects = {chapter: sorted((directory / chapter).rglob("*.cu.o")) for chapter in chapters}
    with ThreadPoolExecutor(build.cores()) as pool:
        kernels = {path: pool.submit(_kernels, reader, path) for paths in objects.values() for path in paths}
    return {chapter: _digest(sorted(one for path in paths for one in kernels[path].result()))
            for chapter, paths in objects.items() if paths}


def _kernels(reader: Path, path: Path) -> list[str]:
    """A digest of each kernel in this object file."""
    told = subprocess.run([reader, "-sass", path], capture_output=True, text=True, check=False).stdout
    return digests(told)


def digests(sass: str) -> list[str]:
    """Of each function in what cuobjdump says."""
    return [_digest(_NUMBER_OF_SOURCE.sub("", line) for line in _INSTRUCTION.findall(function))
            for function in re.split(r"^\s*Function : .*$", sass, flags=re.M)[1:]]


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_DIGITS]
