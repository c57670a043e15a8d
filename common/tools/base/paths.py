"""Where things are."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build"
RESULTS = ROOT / "common" / "results"
COUNTS = ROOT / "common" / "tests" / "trace"


def shown(path: Path) -> str:
    """The path as the user would type it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("../..") else relative


def slug(name: str) -> str:
    """"NVIDIA H200" -> "nvidia-h200"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
