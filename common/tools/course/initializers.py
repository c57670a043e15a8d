"""Variables outside of functions whose first values take code to make: it would run before the program begins.

A kernel's file has constants there, which are constexpr, and what a `__device__` variable begins with is a number.
"""

import re

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|[^\s\w]")
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'"
                      r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
_TYPES = ("struct", "class", "enum", "union")

Token = tuple[str, int]  # (it, its line, counted from 1)


def first_initializer(text: str, written: "set[int]") -> int:
    """The line of the first such variable on these lines of a file; 0 if there is none."""
    text = _NO_CODE.sub(lambda found: "\n" * found[0].count("\n") + " ", text)
    statement: list[Token] = []  # outside of functions and types
    depth = 0  # brackets that are open in it
    is_a_function: "bool | None" = None  # whether its first { begins a function's body; None before it
    for number, line in enumerate(text.split("\n"), 1):
        for token in _TOKEN.findall(line):
            statement.append((token, number))
            if token in "([{":
                if token == "{" and depth == 0:
                    if _is_a_namespace(statement):
                        statement = []
                        continue
                    is_a_function = _is_a_function(statement) if is_a_function is None else is_a_function
                depth += 1
            elif token in ")]}" and depth == 0:  # of a namespace
                statement, is_a_function = [], None
            else:
                depth -= token in ")]}"
                if depth == 0 and (token == ";" or token == "}" and is_a_function):
                    its_lines = [at for _, at in statement if at in written]
                    if its_lines and not is_a_function and _runs([word for word, _ in statement]):
                        return its_lines[0]
                    statement, is_a_function = [], None
    return 0


def _is_a_namespace(statement: "list[Token]") -> bool:
    words = [word for word, _ in statement[:3]]
    return words[0] == "namespace" or words[:2] in (["inline", "namespace"], ["extern", "{"])


def _is_a_function(statement: "list[Token]") -> bool:
    """Whether a { after these words, the last one, begins a function's body."""
    words = _without_template([word for word, _ in statement])
    return ")" in words and "=" not in words and words[0] not in _TYPES


def _without_template(words: "list[str]") -> "list[str]":
    while words[:2] == ["template", "<"]:
        depth, end = 1, 2
        while end < len(words) and depth:
            depth += (words[end] == "<") - (words[end] == ">")
            end += 1
        words = words[end:]
    return words


def _runs(words: "list[str]") -> bool:
    """Whether code may run for this statement, no function's body, before the program begins."""
    words = _without_template(words)
    if words[:1] in ([], [";"], ["using"], ["static_assert"]) or "constexpr" in words or "constinit" in words:
        return False
    if words[0] in _TYPES and "}" in words:
        return words[-2] != "}" or "inline" in words and "static" in words
    if "=" in words:
        return any(re.match(r"[A-Za-z_({\[]", word) for word in words[words.index("=") + 1 :])
    return "{" in words or "(" in words and not _is_declared(words)


def _is_declared(words: "list[str]") -> bool:
    """Whether it is a function's declaration: its first parameter has a type and a name, or it has none."""
    first = words[words.index("(") + 1 :]
    return first[:1] == [")"] or len(first) > 1 and all(re.match(r"[A-Za-z_]", word) for word in first[:2])
