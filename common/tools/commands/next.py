"""where you are: the next exercise, its place in the lesson, and how long it takes"""

import argparse

from tools.base import say
from tools.course import LearnersPath


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(arguments: argparse.Namespace) -> int:
    for line in LearnersPath().lines():
        say(line)
    return 0
