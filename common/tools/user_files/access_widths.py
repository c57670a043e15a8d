"""How wide nvcc makes the accesses of each source line, from its machine code (common/simt/trace/widths.h)."""

import re
import shutil
import tempfile
from pathlib import Path

from tools.base import Failure, output_of

OPERATIONS = {"LDG": "global_load", "LD": "global_load", "STG": "global_store", "ST": "global_store",
              "LDS": "shared_load", "STS": "shared_store"}
PLACE = re.compile(r'//## File "(?P<path>[^"]+)", line (?P<line>\d+)')
ACCESS = re.compile(r"/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(?P<name>LDG|LDS|LD|STG|STS|ST)(?P<modifiers>(?:\.\w+)*)\s")

Widths = dict[tuple[str, str], int]  # {("directory/file.cu:42", "shared_load"): bytes}


def possible() -> bool:
    return shutil.which("nvcc") is not None and shutil.which("nvdisasm") is not None


def of_machine_code(text: str) -> Widths:
    """The widest access of each source line, as nvdisasm prints the code."""
    widths: Widths = {}
    place = ""
    for line in text.splitlines():
        found = PLACE.search(line)
        if found:
            place = "/".join(Path(found["path"]).parts[-2:]) + ":" + found["line"]
            continue
        found = ACCESS.search(line)
        if found and place:
            modifiers = found["modifiers"].split(".")
            bits = next((int(m) for m in modifiers if m in ("64", "128", "256")), 0)
            narrow = next((1 if m.endswith("8") else 2 for m in modifiers if m in ("U8", "S8", "U16", "S16")), 4)
            key = place, OPERATIONS[found["name"]]
            widths[key] = max(widths.get(key, 0), bits // 8 or narrow)
    return widths


def of_files(sources: list[str], flags: list[str]) -> Widths:
    """The widths of these files' accesses, compiled by nvcc for compute capability 9.0 with these flags."""
    widths: Widths = {}
    with tempfile.TemporaryDirectory() as directory:
        for number, source in enumerate(sources):
            binary = Path(directory) / f"{number}.cubin"
            said = output_of(["nvcc", "-cubin", "-arch=sm_90a", "-lineinfo", *flags, "-o", str(binary), str(source)])
            code = output_of(["nvdisasm", "-g", "-c", str(binary)]) if said is not None else None
            if code is None:
                raise Failure(f"nvcc cannot compile {source}: without it the counts are g++'s")
            widths.update(of_machine_code(code))
    return widths


def text(widths: Widths) -> str:
    """The contents of the file that SIMT_WIDTHS names."""
    return "".join(f"{place} {operation} {width}\n" for (place, operation), width in sorted(widths.items()))
