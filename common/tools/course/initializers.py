"""Variables outside of functions that an exercise cannot have: whose first values take code to make, which would run
before the program begins; and those that are written to. These are no memory of the kernel's to the engine, which
neither counts what is done there nor looks for races.

A kernel's file has constants there, which are constexpr, or const and numbers.
"""

import re

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|[^\s\w]")
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'"
                      r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
_TYPES = ("struct", "class", "enum", "union")
_RUNS = "a variable outside of functions, whose first value is no number and which is not constexpr"
NOT_CONST = ("a variable outside of functions that is not const: in an exercise no kernel may write to one; what "
             "threads share belongs in __shared__ memory")
# Words of a variable whose first value, of numbers, calls nothing; the types may have no other meaning in the file.
_PLAIN = re.compile(r"static|inline|const|volatile|__(?:device|constant|managed)__|auto|bool|char|double|float|int|long"
                    r"|short|signed|unsigned|std|:|(?:u?int(?:8|16|32|64)_t|size_t)")
_NUMBER = re.compile(r"[\d.,{}()+*/%-].*|INFINITY|NAN|true|false")

Token = tuple[str, int]  # (it, its line, counted from 1)


def first_variable(text: str, written: "set[int]") -> "tuple[int, str] | None":
    """(the line, what is wrong) of the first such variable on these lines of a file."""
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
                    words = _without_template([word for word, _ in statement])
                    if its_lines and not is_a_function and (wrong := _wrong_with(words, text)):
                        return its_lines[0], wrong
                    statement, is_a_function = [], None
    return None


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


def _wrong_with(words: "list[str]", text: str) -> str:
    """Of this statement, no function's body; empty if nothing is."""
    if words[:1] in ([], [";"], ["using"], ["typedef"], ["static_assert"]) or "constexpr" in words:
        return ""
    if words[0] in _TYPES and "}" in words:
        return _RUNS if words[-2] != "}" or "inline" in words and "static" in words else ""
    if words[0] in _TYPES and len(words) <= 3:
        return ""
    begins = [at for at, word in enumerate(words) if word in "={"]
    if not begins and "(" in words:
        return "" if _is_declared(words) else _RUNS
    if begins and "constinit" not in words and not _is_of_numbers(words, begins[0], text):
        return _RUNS
    return "" if "const" in words or "__constant__" in words else NOT_CONST


def _is_of_numbers(words: "list[str]", first: int, text: str) -> bool:
    """Whether it is a number, or several, and no object of a type that may be made by code."""
    name = next((at for at, word in enumerate(words[:first]) if not _PLAIN.fullmatch(word)), 0)
    is_ours = any(re.search(rf"\b(?:using|struct|class|union|enum|typedef\b[^;]*)\s+{word}\b", text)
                  for word in words[:name] if word.endswith("_t"))
    if is_ours or not name or words[name + 1 : first] and words[name + 1] != "[":
        return False
    value, depth = True, 0
    for at in range(first, len(words) - 1):
        depth += (words[at] in "{[(") - (words[at] in "}])")
        if depth == 0 and words[at] == ",":
            value = False  # the next one's name follows
        elif not value and words[at] == "(":
            return False
        elif not value:
            value = words[at] in "={"
        elif value and words[at] != "=" and not _NUMBER.fullmatch(words[at]):
            return False
    return True


def _is_declared(words: "list[str]") -> bool:
    """Whether it is a function's declaration: its first parameter has a type and a name, or it has none."""
    first = words[words.index("(") + 1 :]
    return first[:1] == [")"] or len(first) > 1 and all(re.match(r"[A-Za-z_]", word) for word in first[:2])
