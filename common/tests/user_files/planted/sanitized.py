"""What compute-sanitizer's four tools say of the planted programs, as rows of common/simt/planted_mistakes.md. On a
machine with a GPU: python3 sanitized.py [CASE or FILE ..], or of those cases that the page has as "not asked"."""

import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "simt" / "planted_mistakes.md"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FILES = ("mistakes_kernels.cu", "mistakes_host.cu", "mistakes_libraries.cu", "correct.cu")
SECONDS = 15
WORKERS = 14
# Cases that nvcc refuses: the words of theirs that it does not get to see, and what it sees
REFUSED = {
    "too_much_static_shared": ("large[13 * 1024]", "large[11 * 1024]"),
    "operator_of_the_host": ("= -x[threadIdx.x]", "= x[threadIdx.x]"),
    "member_of_the_host": ("[threadIdx.x].sum()", "[threadIdx.x].a"),
}


def made(file: str, place: Path) -> Path:
    for header in HERE.glob("*.h"):
        (place / header.name).write_text(header.read_text())
    source = (HERE / file).read_text()
    for words, instead in REFUSED.values():
        source = source.replace(words, instead)
    (place / file).write_text(source)
    program = place / file.removesuffix(".cu")
    subprocess.run(["nvcc", "-std=c++17", "-lineinfo", "-arch=native", "-rdc=true", "-o", program, place / file, "-lcublas", "-lcurand"], check=True)
    return program


def said(program: Path, case: str, tool: str) -> str:
    if case in REFUSED:
        return "nvcc"
    leaks = ["--leak-check", "full"] if (case, tool) == ("never_freed", "memcheck") else []  # most of the others leak, too
    command = ["compute-sanitizer", "--tool", tool, *leaks, program, case]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "hangs"
    output = done.stdout + done.stderr
    for file in (f"{program.name}.cu", "steps.h"):
        for number, line in enumerate((HERE / file).read_text().splitlines(), 1):
            if line.endswith(f"// {case}") and re.search(rf"{re.escape(file)}:{number}\b", output):
                return "line"
    if re.search(r"SUMMARY: [1-9]", output):
        return "yes"
    return "failed" if done.returncode else "–"


def main(asked: list) -> None:
    page = PAGE.read_text()
    open_rows = {row.replace(" ", "_") for row in re.findall(r"^\| ([a-z0-9 ]+) \| \w+ \| not asked", page, re.MULTILINE)}
    cases = {file: [case for case in re.findall(r"^CASE\((\w+)\)", (HERE / file).read_text(), re.MULTILINE)
                    if (case in asked or file in asked if asked else case in open_rows)] for file in FILES}
    files = [file for file in FILES if cases[file]]
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(WORKERS) as pool:
        programs = list(pool.map(lambda file: made(file, Path(place)), files))
        words = [(case, file, [pool.submit(said, program, case, tool) for tool in TOOLS])
                 for file, program in zip(files, programs) for case in cases[file]]
        for case, file, each in words:
            print(f"| {case.replace('_', ' ')} | {file} | {' | '.join(word.result() for word in each)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
