"""The pictures that explain, a module a lesson: lesson_02.py has those of 02_coalescing.

Each public function of such a module makes a Drawing: `lanes_on_sectors` the one in
02_coalescing/pictures/lanes-on-sectors.svg.
What a kernel decides, the function asks its source for: constant("03_tiling/3_padded.cu", "pad"). ./workbook dev
report writes the files, and with --check names each that differs.
"""

import importlib
import inspect
from pathlib import Path

from tools.base import write_whole

FOLDER = "pictures"  # beside the lesson


def all_pictures(root: Path) -> dict[Path, str]:
    """{file: what it should be} of every picture of every lesson."""
    found: dict[Path, str] = {}
    for source in sorted(Path(__file__).parent.glob("lesson_*.py")):
        module = importlib.import_module(f"{__name__}.{source.stem}")
        chapters = sorted(root.glob(f"{source.stem.partition('_')[2]}_*/README.md"))
        if not chapters:
            continue
        for name, make in inspect.getmembers(module, inspect.isfunction):
            if make.__module__ == module.__name__ and not name.startswith("_"):
                found[chapters[0].parent / FOLDER / f"{name.replace('_', '-')}.svg"] = make().svg()
    return found


def stale(root: Path) -> list[str]:
    """Each picture that is not as it is drawn now, and each that nothing draws."""
    wanted = all_pictures(root)
    there = set(root.glob(f"[0-9][0-9]_*/{FOLDER}/*.svg"))
    wrong = [f"{path.relative_to(root)} is not what common/tools/showing/lesson_pictures draws"
             for path, text in wanted.items() if path not in there or path.read_text() != text]
    return wrong + [f"{path.relative_to(root)}: no function of common/tools/showing/lesson_pictures draws it"
                    for path in sorted(there - wanted.keys())]


def write(root: Path) -> list[Path]:
    """Writes those that differ, and takes away what nothing draws: the files that have changed."""
    wanted = all_pictures(root)
    gone = [path for path in root.glob(f"[0-9][0-9]_*/{FOLDER}/*.svg") if path not in wanted]
    changed = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in gone:
        path.unlink()
    for path in changed:
        write_whole(path, wanted[path])
    return changed + gone
