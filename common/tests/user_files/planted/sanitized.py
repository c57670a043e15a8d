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
    "constructor_of_the_host": ("Span(threadIdx.x, 4).last", "threadIdx.x"),
}

# Cases whose kernels launch kernels: but for memcheck, the tools take no program that has one
WITH_CHILDREN = {"variable_given_to_a_child": "child<<<1, 1>>>(&result);",
                 "more_children_than_may_wait": "child<<<1, 1>>>(x + threadIdx.x);"}


def made(file: str, place: Path, children: bool) -> Path:
    source = (HERE / file).read_text()
    for words, instead in REFUSED.values():
        source = source.replace(words, instead)
    for words in () if children else WITH_CHILDREN.values():
        source = source.replace(words, "")
    place.mkdir(exist_ok=True)
    (place / file).write_text(source)
    program = place / file.removesuffix(".cu")
    subprocess.run(["nvcc", f"-I{HERE}", "-std=c++17", "-lineinfo", "-arch=native", "-rdc=true", "-o", program,
                    place / file, "-lcublas", "-lcurand"], check=True)
    return program


def said(program: Path, case: str, tool: str) -> str:
    if case in REFUSED:
        return "nvcc"
    if case in WITH_CHILDREN and tool != "memcheck":
        return "failed"
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
        wanted = sorted({(file, case in WITH_CHILDREN) for file in files for case in cases[file]})
        programs = dict(zip(wanted, pool.map(lambda each: made(each[0], Path(place, str(each[1])), each[1]), wanted)))
        words = [(case, file, [pool.submit(said, programs[file, case in WITH_CHILDREN], case, tool) for tool in TOOLS])
                 for file in files for case in cases[file]]
        for case, file, each in words:
            print(f"| {case.replace('_', ' ')} | {file} | {' | '.join(word.result() for word in each)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
