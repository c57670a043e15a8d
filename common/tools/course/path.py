"""How far a learner is: what is known of each exercise, which one is next, and which rungs wait for one."""

import math
from functools import cached_property

from tools.base import Failure, chapters
from tools.course import boxes, markers, rungs
from tools.course.exercises import Course, Exercise, load
from tools.course.judging import Beside, Workshop
from tools.course.learner import Learner
from tools.course.progress import StudentProgress
from tools.course.questions import Answers

# The tests of the workbook itself, by the first words of their names: they take its solutions for granted, and a
# student has no use for them.
OF_THE_WORKBOOK = ("capi", "course", "harness", "mutants", "new_chapter", "packages", "python", "ranks", "style",
                   "teaching", "tools")
THE_BOOKS = "the book's"  # the state of an exercise that nobody has started
DAMAGED = "damaged"  # of one whose file has not the markers that it needs


class LearnersPath:
    """All that is known of one tree. No check is run: results are those of the last ones."""

    def __init__(self, course: "Course | None" = None):
        self.course = course or load(of_a_learner=True)
        self.learner, self.answers = Learner(self.course), Answers(self.course.root)
        self.progress = StudentProgress(StudentProgress.beside(self.course.root))

    @cached_property
    def _ladder(self) -> rungs.Ladder:
        return rungs.read(self.course.root, {})

    def state(self, exercise: Exercise) -> str:
        if exercise.kind == "measure":
            return self.progress.state(exercise, self.judged(exercise), self.answers.answer(exercise) is not None)
        if not self.learner.theirs(exercise):
            return THE_BOOKS
        if exercise.file in self.course.damaged:
            return DAMAGED
        return self.progress.state(exercise, self.judged(exercise), self.course.attempted(exercise))

    def judged(self, exercise: Exercise) -> str:
        """What a check is about: a result is known as long as this stays the same."""
        return self.answers.written(exercise) if exercise.kind == "measure" else self.course.written(exercise)

    def checked(self, exercise: Exercise, state: str) -> None:
        self.progress.checked(exercise, self.judged(exercise), state)

    # --- What is open -------------------------------------------------------------------------------------------------

    @cached_property
    def open(self) -> list[Exercise]:
        """The exercises in kernels that the learner has started and that are not known to be right."""
        return [one for one in self.course.exercises if one.kind != "measure" and self.learner.started(one)
                and self.state(one) != "right"]

    def open_behind(self, chapter: str, rung: "str | None" = None) -> list[str]:
        """The open exercises in the kernels that this rung runs (or any rung of the chapter): while they are open, it
        need not be right."""
        files = self._files_behind(chapter, rung) if self.open else set()
        return [one.id for one in self.open if one.file in files]

    def _files_behind(self, chapter: str, rung: "str | None") -> set[str]:
        listed = [one for one in self._ladder.listed(chapter) if rung in (None, one.name)]
        place = f"{chapters.Chapter(chapter).place}/"  # of an example, which is no rung, or of exercises' kernels
        return {file for one in listed for file in one.files} if listed else {
            one.file for one in self.course.exercises if one.file.startswith(place)}

    def workshop(self, exercise: Exercise) -> Workshop:
        """Where it is judged by itself: with the book's text of the other open exercises in the kernels that its rung
        runs, and of those in other files of its program, should they not compile; traced as grading traces it."""
        others = [one for one in self.open if one.id != exercise.id]
        behind = {exercise.file, *self._files_behind(exercise.chapter, exercise.rung)}
        elsewhere = [one for one in others if one.file not in behind and one.file not in self.course.damaged]
        beside = [one for one in others if one.file in behind and self.learner.has_the_books(one)]
        text = markers.for_a_compiler(str(self.course.root / exercise.file), self.course.text(exercise), {})
        return Beside(exercise.id, [one.id for one in beside], self.learner.with_the_books(beside),
                      self.learner.with_the_books(elsewhere), {exercise.file: text})

    def excused(self, chapter: str, rung: str, why: str) -> str:
        """What is said of a rung that is not right, because exercises are open; Failure if none is behind it."""
        behind = self.open_behind(chapter, rung)
        if not behind:
            raise Failure(f"{chapter}/{rung}: {why}")
        return f"{chapter}/{rung}, open: {', '.join(behind)}\n  {why}"

    # --- What is next -------------------------------------------------------------------------------------------------

    def next(self, among: "list[Exercise] | None" = None) -> "Exercise | None":
        """The first exercise that is the learner's and not known to be right. Questions are everybody's: one is next
        only where the learner has started its chapter."""
        chosen = [one for one in self.in_order if among is None or one in among]
        begun = {one.id[:2] for one in chosen if one.kind != "measure" and self.learner.started(one)}
        return next((one for one in chosen if one.id[:2] in begun and self.learner.started(one)
                     and self.state(one) != "right"), None)

    @cached_property
    def _places(self) -> dict[str, boxes.Place]:
        return boxes.places(self.course)

    @cached_property
    def in_order(self) -> list[Exercise]:
        """Chapter by chapter; in a chapter as their boxes stand in the lesson, and then those that have no box yet."""
        def place(one: Exercise) -> tuple[str, float]:
            return one.id[:2], self._places[one.id].line if one.id in self._places else math.inf

        return sorted(self.course.exercises, key=place)

    def where(self, exercise: Exercise) -> list[str]:
        """Lines that say what to do next, and how long it takes."""
        course, place = self.course, self._places.get(exercise.id)
        (chapter,) = chapters.select([exercise.id[:2]], chapters.with_lessons(course.root))
        read = (f"{place.file} up to line {place.line}, the box in \"{place.heading}\"" if place
                else f"{chapter.name}/README.md")
        lines = [f"{exercise.id}: {exercise.title} (about {exercise.minutes} minutes)", f"  read   {read}"]
        if exercise.kind != "measure" and exercise.file in course.damaged:
            lines.append(f"  mend   {course.damaged[exercise.file]}")
        elif exercise.kind == "code":
            region = course.region(exercise)
            lines.append(f"  write  {exercise.file}:{region.first}, {region.task}")
        elif exercise.kind == "debug":
            lines.append(f"  mend   {exercise.file}, which has a mistake")
        named = exercise.kind != "measure" or self.answers.student
        student = "" if named else ' --student "Your Name"'
        lines.append(f"  check  ./workbook check {exercise.id}{student}")
        return lines

    def done(self) -> str:
        """How far the learner is, in a line."""
        exercises = self.course.exercises
        left = [one for one in exercises if self.state(one) != "right"]
        minutes = sum(one.minutes for one in left)
        time = f"{minutes} minutes" if minutes < 90 else f"{minutes / 60:.0f} hours"
        return f"{len(exercises) - len(left)} of {len(exercises)} right" + (f", about {time} to go" if left else "")

    def lines(self, among: "list[Exercise] | None" = None) -> list[str]:
        """Where the learner is: what ./workbook next prints."""
        exercise = self.next(among)
        if exercise:
            return ["Next: " + self.where(exercise)[0], *self.where(exercise)[1:], self.done()]
        if not self.learner.has_started():
            return ["Nothing is started: the exercises have the book's own solutions. ./workbook start makes this "
                    "clone yours, and ./workbook start 02 only chapter 02."]
        waiting = next((one for one in self.in_order if self.state(one) != "right"), None)
        if waiting is None:
            return [f"All {len(self.course.exercises)} exercises are right. There is nothing left but a kernel of "
                    "your own: ./workbook dev new 14_mine --from 05"]
        return [f"All that you have started is right ({self.done()}): ./workbook start {waiting.id[:2]} begins the "
                "next chapter"]

