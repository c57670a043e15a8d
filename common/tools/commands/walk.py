"""a page that replays a real run: which tiles each thread block works on, step by step, without a GPU

The SIMT engine runs the kernels once and records which rows of which matrix every thread block reads and writes. The page is one
file that needs no network. STEP is a chapter, whose last rung is meant, or a rung of one: 05, 08/earlystop.
"""

import webbrowser
from pathlib import Path

from tools.machine import BUILD, Failure, Progress, build, chapters, say, shown
from tools.measuring import asked, engine
from tools.showing import walk


def add_arguments(parser) -> None:
    parser.add_argument("step", metavar="STEP", help="chapter or chapter/rung: 05 08/earlystop")
    asked.add_arguments(parser, several=False, direction="default: the forward if there is one, else the backward")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the page there (default: build/walk/STEP.html)")
    parser.add_argument("--no-browser", action="store_true", help="write the page, do not open it")


def run(arguments) -> int:
    name, _, rung = arguments.step.partition("/")
    (chapter,) = chapters.select([name], chapters.all_chapters())
    if not arguments.seq_q:
        arguments.seq_q = [128]
    if not arguments.heads:
        arguments.heads = arguments.kv_heads or 2
    (flags,) = asked.problems(arguments)
    out = _writable(arguments.out) if arguments.out else None

    directory = build.ensure_built("trace", [chapter.name])
    program = chapter.program(directory)
    direction, rung = _step(chapter, rung, arguments.direction, directory)
    walk.require_small(asked.resolved(program, flags)[0], direction)
    with Progress("Recording") as progress:
        progress.show(f"{chapter.name}/{rung} {direction}")
        recorded = engine.counts_of(program, "--walk", *flags, f"--direction={direction}", f"--rung={rung}")
    page = walk.page([walk.walk_of(recorded)])
    out = out or _writable(BUILD / "walk" / f"{chapter.name}-{rung}-{direction}.html", make_directory=True)
    out.write_text(page)
    say(f"{shown(out)}: {len(page.encode()):,} bytes, opens in any browser")
    if not arguments.no_browser and not webbrowser.open(out.resolve().as_uri()):
        say("No browser answers here: open it yourself.")
    return 0


def _step(chapter: chapters.Chapter, rung: str, direction: "str | None", directory: Path) -> tuple:
    """(direction, rung)"""
    description = chapters.describe(chapter, [directory])
    if not description:
        raise Failure(f"{chapter.name} does not say what it has")
    known = [each["name"] for each in description.rungs]
    if rung and rung not in known:
        raise Failure(f"{chapter.name} has no rung {rung} (rungs: {', '.join(known)})", status=2)
    for one in [direction] if direction else ["forward", "backward"]:
        rungs = description.rungs_with(one)
        if rungs and rung in ("", *rungs):
            return one, rung or rungs[-1]
    raise Failure(f"{chapter.name}{'/' * bool(rung)}{rung} has no {direction}", status=2)


def _writable(path: Path, make_directory: bool = False) -> Path:
    if make_directory:
        path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    try:
        path.open("a").close()
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}", status=2)
    if is_new:
        path.unlink()  # until there is a page
    return path
