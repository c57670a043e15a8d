"""Expressions in text, evaluated: arithmetic, and calls of functions that the caller names. Lessons and exercises have them."""

import ast
import operator

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


class NotUnderstood(Exception):
    """One line: what an expression is that should not be there."""


class DividesByZero(NotUnderstood):
    """What was counted is 0."""


def evaluate(text: str, names):
    """An expression of calls of the public methods of `names`, numbers, strings, + - * / and brackets."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise NotUnderstood(f"{text.strip()} is no expression") from None

    def value(node):
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
            keywords = {keyword.arg: value(keyword.value) for keyword in node.keywords}
            try:
                return method(*arguments, **keywords)
            except TypeError as error:
                raise NotUnderstood(f"{ast.unparse(node)}: {error}") from None
        raise NotUnderstood(f"{ast.unparse(node)} is neither a number nor one of ours")

    return value(tree)
