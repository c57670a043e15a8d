"""NVIDIA's CCCL headers, Thrust and libcu++, which the engine compiles (common/simt/README.md, "Thrust and CUB")."""

import sys
from pathlib import Path

from tools.base import BUILD, cuda

PACKAGES = BUILD / "nvidia"  # where pip puts them, if told so


def headers() -> "Path | None":
    """The folder that has thrust/ and cuda/ in it: of the toolkit that nvcc is in, or of a Python package."""
    nvcc = cuda.find_nvcc()
    homes = [Path(nvcc.path).resolve().parent.parent] if nvcc else []
    homes += [home for place in (PACKAGES, *map(Path, sys.path)) for home in sorted(place.glob("nvidia/cu*"))]
    for home in homes:
        for folder in (home / "include" / "cccl", home / "include"):
            if (folder / "thrust" / "version.h").exists() and (folder / "cuda" / "__cccl_config").exists():
                return folder
    return None


def how_to_get(header: str) -> str:
    """In a message about this header, which was not found."""
    if header.startswith("thrust/") and headers() is None:
        target = f"--target {PACKAGES.relative_to(BUILD.parent)} " if (BUILD.parent / "workbook").exists() else ""
        return f"Thrust needs NVIDIA's CCCL headers: python3 -m pip install {target}nvidia-cuda-cccl"
    return f"{header} is not part of the engine"
