"""How a command ends when it cannot go on."""


class Failure(Exception):
    """One line that says what is wrong and what to do next, and the exit status: 2 for bad input, else 1."""

    def __init__(self, message: str, status: int = 1):
        super().__init__(message)
        self.status = status
