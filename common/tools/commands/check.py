"""is your solution of an exercise right?

Runs what the exercise's own tests say, for its rung alone, on the SIMT engine: no GPU is needed. It says whether the
exercise is right, wrong, or not attempted. Of what is wrong it shows the first number in the kernel that is (of S, m,
P, l, O, dP, dS or a result: what it is and what it should be) or, where the engine saw a race, an access out of bounds,
a deadlock or a read of what was never written, that and its line in your file. Of a mistake that you are to find it
shows what it does. A right solution that grading would refuse, for it has more than a kernel's code, is named as that.
Of a chapter it checks every exercise; of nothing, every exercise there is. Each is judged by itself: where another one
of the same kernel is still open, the book's text stands in for it, and your file stays as it is.

In a clone that nobody has started the solutions are the book's, and a line says so instead; --book checks them.

Of a question you predict the number first, from the source, and count then: in a terminal check asks for both,
elsewhere --predict and --answer say them. They are kept in answers.json; a wrong prediction costs nothing. A question's
numbers are drawn from your name, or from the one that your course has given you, which --student writes there. The exit
status is 0 if all of them are right.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tools.base import Failure, bad, bold, cuda, file_to_write, good, say, shown, write_whole
from tools.course import (
    DAMAGED,
    LARGEST,
    Answers,
    Course,
    Exercise,
    LearnersPath,
    Verdict,
    judge,
    kernelcode,
    load,
    log_page,
    verdict_with_prediction,
)

WAIT = 0.3  # seconds between two looks at the files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exercises", nargs="*", metavar="EXERCISE",
                        help="05.rescale, or 05 for all exercises of a chapter (default: all)")
    parser.add_argument("--watch", action="store_true", help="check again whenever a file is saved, until Ctrl-C")
    parser.add_argument("--book", action="store_true", help="the book's own solutions, too, where nothing is started")
    parser.add_argument("--gpu", action="store_true", help="on the GPU too, after the engine has found nothing")
    parser.add_argument("--student", metavar="NAME",
                        help="whose answers these are: the questions are drawn from the name")
    parser.add_argument("--predict", type=_number, metavar="NUMBER",
                        help="what you expect the answer of a question to be")
    parser.add_argument("--answer", type=_number, metavar="NUMBER", help="the answer of a question, counted")
    parser.add_argument("--log", type=file_to_write, metavar="FILE",
                        help="begin the page that you hand in: predictions and counts of these questions")


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = LARGEST
    if not 0 <= number < LARGEST:
        raise argparse.ArgumentTypeError(f"{text or 'nothing'} is not a number from 0 to below {LARGEST:g}")
    return number


def run(arguments: argparse.Namespace) -> int:
    course = load(of_a_learner=True)
    chosen = course.select(arguments.exercises)
    if arguments.gpu:
        choice = cuda.choose_preset(None)
        if choice.preset != "cuda":
            raise Failure(f"--gpu: {choice.why}")
    if arguments.student is not None:
        Answers(course.root).begin(arguments.student, course)
    chosen = chosen if arguments.book else _without_the_books(course, chosen)
    if not chosen:
        return 1
    if arguments.log and arguments.log.exists():
        raise Failure(f"--log: {shown(arguments.log)} is there already, and what you have written into it stays",
                      status=2)
    if arguments.predict is not None or arguments.answer is not None:
        _note(arguments, chosen, Answers(course.root))
    elif len(chosen) == 1 and chosen[0].kind == "measure" and sys.stdin.isatty() and not arguments.watch:
        _ask(course, chosen[0])
    status = _check(course, chosen, arguments.gpu)
    if arguments.log:
        write_whole(arguments.log, log_page(chosen, Answers(course.root)))
        say(f"{shown(arguments.log)}: predictions and counts; the calculations and the explanations are yours")
    while arguments.watch:
        before = _saved(course, chosen)
        say("waiting for a file to be saved; Ctrl-C ends")
        while _saved(course, chosen) == before:
            time.sleep(WAIT)
        try:
            status = _check(load(of_a_learner=True), chosen, arguments.gpu)
        except Failure as failure:  # a marker that is gone, say: the next save may mend it
            say(str(failure))
            status = failure.status
    return status


def _note(arguments: argparse.Namespace, chosen: list[Exercise], answers: Answers) -> None:
    """What --predict and --answer say of the only question."""
    flag = "--predict" if arguments.predict is not None else "--answer"
    if len(chosen) != 1 or chosen[0].kind != "measure":
        questions = [one.id for one in chosen if one.kind == "measure"]
        example = questions[0] if questions else "01.sectors"
        raise Failure(f"{flag} is about one question: name it, as in check {example} {flag} NUMBER", status=2)
    if arguments.predict is not None:
        answers.predict(chosen[0], arguments.predict)
    if arguments.answer is not None:
        answers.give(chosen[0], arguments.answer)


def _ask(course: Course, exercise: Exercise) -> None:
    """Asks for the name, the prediction and the count that are not there yet, until an answer is empty."""
    def asked(question: str, note: Callable[[str], None]) -> bool:
        try:
            text = input(f"{question}: ").strip()
        except EOFError:
            text = ""
        if text:
            note(text)
        return bool(text)

    def number(note: Callable[[Exercise, float], None]) -> Callable[[str], None]:
        def noted(text: str) -> None:
            try:
                note(exercise, _number(text))
            except argparse.ArgumentTypeError as error:
                raise Failure(str(error), status=2) from None
        return noted

    if not Answers(course.root).student and not asked("your name, from which the question's numbers are drawn",
                                                      lambda name: Answers(course.root).begin(name, course)):
        return
    answers = Answers(course.root)
    if answers.prediction(exercise) is None:
        _say(exercise, verdict_with_prediction(exercise, answers))
        if not asked("your prediction", number(answers.predict)):
            return
    if answers.answer(exercise) is None:
        _say(exercise, verdict_with_prediction(exercise, answers))
        asked("counted (nothing: later)", number(answers.give))


def _check(course: Course, chosen: list[Exercise], gpu: bool) -> int:
    path, answers = LearnersPath(course), Answers(course.root)
    states = []
    for exercise in chosen:
        if exercise.kind == "measure":
            verdict = verdict_with_prediction(exercise, answers)
        elif exercise.file in course.damaged:
            verdict = Verdict(DAMAGED, [course.damaged[exercise.file]])
        else:
            text, verdict = course.text(exercise), judge(course, exercise, gpu, workshop=path.workshop(exercise))
            refused = kernelcode.refusal(course, exercise, text) if verdict.state == "right" else None
            if refused and refused.refused:
                verdict = Verdict("refused", [refused.line,
                                              "what it computes is right, but grading takes only a kernel's code"])
            elif refused:
                verdict = Verdict("right", [f"(grading will show your instructor {refused.line})"])
        if verdict.state != DAMAGED:
            path.checked(exercise, verdict.state)
        _say(exercise, verdict)
        states.append(verdict.state)
    if len(chosen) > 1:
        say(f"{states.count('right')} of {len(chosen)} right")
    if any(state != "right" for state in states):
        return 1
    if path.learner.has_started():
        for line in [*(one.then for one in chosen[-1:] if one.then), *path.lines()]:
            say(line)
    return 0


def _without_the_books(course: Course, chosen: list[Exercise]) -> list[Exercise]:
    """Those that are the learner's, after a line about the others."""
    learner, asked = LearnersPath(course).learner, bool(Answers(course.root).student)
    books = [one for one in chosen if not learner.theirs(one)]
    if not books:
        return chosen
    if learner.has_started():
        chapter = books[0].id[:2]
        say(f"{', '.join(one.id for one in books)}: not started, so the book's own solution stands there; ./workbook "
            f"start {chapter} begins chapter {chapter}")
    else:
        say("The solutions here are the book's own, and right. ./workbook start takes them out, and makes this clone "
            "yours.")
    return [one for one in chosen if one not in books and (asked or one.kind != "measure")]


def _say(exercise: Exercise, verdict: Verdict) -> None:
    styles = {"right": good, "wrong": bad, "does not compile": bad, "refused": bad, DAMAGED: bad}
    styled = styles.get(verdict.state, bold)
    say(f"{exercise.id} {styled(verdict.state)}: {exercise.title}")
    for line in verdict.lines:
        say(f"  {line}")


def _saved(course: Course, chosen: list[Exercise]) -> list[tuple[Path, int]]:
    """When each file that may hold an answer was last written."""
    paths = {course.root / exercise.file for exercise in chosen} | {Answers(course.root).path}
    return [(path, path.stat().st_mtime_ns) for path in sorted(paths) if path.exists()]
