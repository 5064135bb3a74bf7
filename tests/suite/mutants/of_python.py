"""What can be changed in a file of Python: inside of functions, by their syntax trees; no line comes or goes by it.

A name stays mentioned where its use is taken away (`if False: total += 1`), since a function whose code is replaced
must keep the variables that it shares with others.
"""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from tests.suite.mutants.edits import Edit

OPERATORS = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "is not": "is", "is": "is not",
    "not in": "in", "in": "not in", "and": "or", "or": "and", "+": "-", "-": "+", "*": "//", "//": "*",
}  # fmt: skip
_OPERATOR = re.compile(r"\bis\s+not\b|\bnot\s+in\b|\b(?:is|in|and|or)\b|[=!<>]=|//|(?<!\*)\*(?!\*)|[<>+-]")
_SKIPPED = (ast.JoinedStr, ast.Assert, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)


def edits(text: str) -> list[Edit]:
    """Every change of this file. A few are no Python, such as a statement left out of `if x: do()`."""
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return finder.found


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


class _Finder(ast.NodeVisitor):
    """Walks through the functions of a file, whatever they stand in."""

    def __init__(self, text: str) -> None:
        self.found: list[Edit] = []
        self._text = text
        self._inside = False
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outside, self._inside = self._inside, True
        for statement in node.body:
            self.visit(statement)
        self._inside = outside

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        if self._inside:
            self._drop(node)  # what it says is for people

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, _SKIPPED):
            return
        if self._inside:
            self._look_at(node)
        super().generic_visit(node)

    def _look_at(self, node: ast.AST) -> None:
        match node:
            case ast.Compare(left=left, comparators=others):
                for before, after in pairwise([left, *others]):
                    self._operator(before, after, "comparison")
            case ast.BoolOp(values=values):
                for before, after in pairwise(values):
                    self._operator(before, after, "and, or")
            case ast.BinOp(left=left, right=right) if not _is_text(left) and not _is_text(right):
                self._operator(left, right, "arithmetic")
            case ast.UnaryOp(op=ast.Not()):
                start, end = self._span(node)
                self._add(start, end, re.sub(r"^not\s*", "", self._text[start:end]), "not")
            case ast.Constant(value=bool() as value):
                self._add(*self._span(node), str(not value), "constant")
            case ast.Constant(value=int() as value):
                self._add(*self._span(node), str(value + 1), "number")
            case ast.If(test=test):
                self._wrap(test, "({}) or True", "always")
                self._wrap(test, "({}) and False", "never")
            case ast.While(test=test) if not isinstance(test, ast.Constant):
                self._wrap(test, "({}) and False", "never")
            case ast.IfExp(test=test):
                self._wrap(test, "(not ({}))", "the other")
            case ast.comprehension(ifs=conditions):
                for condition in conditions:
                    self._wrap(condition, "(({}) or True)", "always")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                self._wrap(value, "None if True else ({})", "nothing returned")
            case ast.Expr(value=value) if not isinstance(value, ast.Constant):
                self._drop(node)
            case ast.AugAssign() | ast.Continue() | ast.Break() | ast.Delete():
                self._drop(node)
            case ast.Assign(targets=[target]) if not isinstance(target, ast.Name):
                self._drop(node)

    def _offset(self, line: int, column: int) -> int:
        """The syntax tree counts columns in bytes."""
        start = self._lines[line - 1]
        text = self._text[start : self._lines[line]]
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _operator(self, before: ast.expr, after: ast.expr, kind: str) -> None:
        """Change the operator between two operands; comments may stand there too."""
        start, end = self._span(before)[1], self._span(after)[0]
        found = _OPERATOR.search(re.sub(r"#[^\n]*", lambda match: " " * len(match[0]), self._text[start:end]))
        if found is not None:
            new = OPERATORS[" ".join(found[0].split())]
            self._add(start + found.start(), start + found.end(), new, kind)

    def _wrap(self, node: ast.expr, pattern: str, kind: str) -> None:
        start, end = self._span(node)
        self._add(start, end, pattern.format(self._text[start:end]), kind)

    def _drop(self, node: ast.stmt) -> None:
        start, end = self._span(node)
        self._add(start, end, f"if False: {self._text[start:end]}", "left out")

    def _add(self, start: int, end: int, new: str, kind: str) -> None:
        self.found.append(Edit(start, end, new, kind))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
