"""the chapters and their rungs, how far you are with the exercises, what this machine supports"""

from tools.base import ROOT, bold, build, chapters, cuda, good, packages, say, table
from tools.course import Answers, Course, Exercise, StudentProgress, load


def add_arguments(parser) -> None:
    parser.add_argument("--exercises", action="store_true", help="every exercise, its points, and how far you are with it")


def run(arguments) -> int:
    if arguments.exercises:
        _say_exercises(each=True)
        return 0
    directories = [build.directory(preset) for preset in ("cpu", "cuda")]
    rows = [["chapter", "what it adds"]]
    for chapter in chapters.all_chapters():
        description = chapters.describe(chapter, directories)
        rows.append([chapter.name, description.idea if description else chapters.title(chapter)])
        if description and len(description.rungs) > 1:
            rows += [[f"  {rung['name']}", rung["idea"]] for rung in description.rungs]
    say(table(rows, left_columns=2))
    say()
    _say_exercises(each=False)
    say()
    choice = cuda.choose_preset(None)
    say(bold("here"))
    say(f"  preset {choice.preset}: {choice.why}")
    missing = packages.missing_packages(choice.preset)
    if missing:
        say(f"  missing packages, which run and test install: {' '.join(package.name for package in missing)}")
    return 0


def _say_exercises(each: bool) -> None:
    """What the last checks have said; nothing is checked here."""
    course, answers, progress = load(), Answers(ROOT), StudentProgress()
    rows, right, points = [["exercise", "", "", "points", "difficulty"]], 0, 0
    for exercise in course.exercises:
        state = known_state(course, answers, progress, exercise)
        right += state == "right"
        points += exercise.points if state == "right" else 0
        rows.append([exercise.id, state, exercise.title + ("" if exercise.required else " (not required)"), exercise.points,
                     "*" * exercise.difficulty])
    if each:
        say(table(rows, left_columns=3))
        say()
    total = sum(exercise.points for exercise in course.exercises)
    text = f"{right} of {len(course.exercises)} right, {points} of {total} points"
    say(bold("exercises"))
    say("  " + (good(text) if course.exercises and right == len(course.exercises) else text) +
        ("" if each else "; ./workbook list --exercises shows each, ./workbook check CHAPTER checks those of a chapter"))


def known_state(course: Course, answers: Answers, progress: StudentProgress, exercise: Exercise) -> str:
    if exercise.kind == "measure":
        return progress.state(exercise, answers.written(exercise), answers.answer(exercise) is not None)
    return progress.state(exercise, course.text(exercise), course.attempted(exercise))
