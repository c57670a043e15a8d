"""The archive for Gradescope: the instructor's tree, and beside it the scripts of the folder autograder."""

import shlex
from pathlib import Path

from tools.base import file_trees, packages
from tools.course import Plan

_SCRIPTS = Path(__file__).with_name("autograder")


def archive(plan: Plan, instructor: file_trees.FileTree) -> file_trees.FileTree:
    names = [package.name for package in [*packages.LIBRARIES, *packages.ENGINE_LIBRARIES, *packages.GRADING]]
    chosen = [*(["--course", "course.json"] if "course.json" in instructor else []),
              *(one.id for one in plan.exercises)]
    assignment = ["# What setup.sh and run_autograder read.", f"libraries=({shlex.join(names)})",
                  f"exercises=({shlex.join(chosen)})"]
    return {**{path.name: path.read_bytes() for path in sorted(_SCRIPTS.iterdir())},
            "assignment.sh": ("\n".join(assignment) + "\n").encode(),
            **{f"workbook/{file}": content for file, content in instructor.items()}}
