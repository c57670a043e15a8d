"""Evaluates the expressions in lessons and exercises: arithmetic, and calls of functions that the caller names."""

import ast
import operator
from collections.abc import Callable
from typing import Any

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {ast.Add: operator.add, ast.Sub: operator.sub,
                                                                  ast.Mult: operator.mul, ast.Div: operator.truediv}


class NotUnderstood(Exception):
    """An expression that cannot be evaluated; the message is one line that says why."""


class DividesByZero(NotUnderstood):
    """The divisor is 0: what was counted did not happen."""


def evaluate(text: str, names: object) -> Any:
    """Evaluates an expression made of numbers, strings, + - * /, brackets, and calls of public methods of `names`."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise NotUnderstood(f"{text.strip()} is no expression") from None

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, type(None))):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            try:
                return OPERATORS[type(node.op)](value(node.left), value(node.right))
            except ZeroDivisionError:
                raise DividesByZero(f"{ast.unparse(node)} divides by 0") from None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            method = None if node.func.id.startswith("_") else getattr(names, node.func.id, None)
            if method is None:
                known = [name for name in dir(names) if not name.startswith("_")]
                raise NotUnderstood(f"there is no {node.func.id} (there are {', '.join(known)})")
            arguments = [value(argument) for argument in node.args]
            keywords: dict[Any, Any] = {keyword.arg: value(keyword.value) for keyword in node.keywords}
            try:
                return method(*arguments, **keywords)
            except TypeError as error:
                raise NotUnderstood(f"{ast.unparse(node)}: {error}") from None
        raise NotUnderstood(f"{ast.unparse(node)} is neither a number nor one of ours")

    return value(tree)
