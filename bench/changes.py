"""Small wrong changes of a source file: what a tired programmer might have written instead.

Left out: docstrings and other texts, annotations, decorators, asserts, what is raised, imports for type
checking, `strict` of `zip` (a guard that never acts), bodies that are only `...` (they never run), and
everything inside an f-string.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
CALLED = {"min": "max", "minimum": "maximum", "any": "all", "argmin": "argmax", "floor": "ceil"}
CALLED |= {there: back for back, there in CALLED.items()}
EITHER_WAY = {*CALLED, "isinstance", "array_equal"}  # the order of their arguments matters not, or too much

Site = tuple[ast.AST, str, str]  # the node that gives way, what is done to it, the text in its place


@dataclass(frozen=True, order=True)
class Change:
    """One wrong change: the bytes of a file from `start` to `end` become `text`."""

    file: str  # below the package
    start: int
    end: int
    text: str
    kind: str
    line: int
    function: str  # as `__qualname__` says, without what is inside it; "" for the body of the module
    before: str  # the lines in question, as they are and as they would be
    after: str

    def applied(self, source: bytes) -> bytes:
        """Return the whole file with the change in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def changes_in(package: Path, file: str) -> list[Change]:
    """Return every change of one file, in the order of the source."""
    source = (package / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for function, (node, kind, text) in _sites(ast.parse(source), ""):
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first, last = starts[node.lineno - 1], starts[node.end_lineno]
        start, end = first + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        before = source[first:last].decode()
        after = (source[first:start] + text.encode() + source[end:last]).decode()
        change = Change(file, start, end, text, kind, node.lineno, function, _flat(before), _flat(after))
        if change.before != change.after:
            found.append(change)
    return sorted(set(found))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _sites(node: ast.AST, function: str, inside: bool = False) -> Iterator[tuple[str, Site]]:
    """Walk down the tree; leave out what no test should look at. What is inside a function is part of it."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not inside:
        function = f"{function}.{node.name}" if function else node.name
        inside = isinstance(node, ast.FunctionDef)
    for kind in (*ONE_OF, *OF_FUNCTIONS):
        if (site := kind(node)) is not None:
            yield function, site
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        if isinstance(node, ast.UnaryOp) and isinstance(value, ast.Constant):
            continue  # -1 mostly stands for none, as -2 would; another sign says more
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _left_out(child):
                yield from _sites(child, function, inside)


def _left_out(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.keyword(arg="strict"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__")]):
            return True
        case ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=value))]) if value is ...:
            return True
        case ast.Call(func=ast.Name(id=name)) if name.endswith("Error"):
            return True
    return False


def _instead(node: ast.AST, kind: str, **fields: object) -> Site:
    """Return a site that has other fields than the node."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return node, kind, ast.unparse(other)


def _comparison(node: ast.AST) -> Site | None:
    if not isinstance(node, ast.Compare) or type(node.ops[0]) not in COMPARED:
        return None
    return _instead(node, "comparison", ops=[COMPARED[type(node.ops[0])](), *node.ops[1:]])


def _arithmetic(node: ast.AST) -> Site | None:
    if not isinstance(node, ast.BinOp | ast.AugAssign) or type(node.op) not in COMPUTED:
        return None
    return _instead(node, "arithmetic", op=COMPUTED[type(node.op)]())


def _and_or(node: ast.AST) -> Site | None:
    if not isinstance(node, ast.BoolOp):
        return None
    op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    node_, kind, text = _instead(node, "and/or", op=op)
    return node_, kind, f"({text})"


def _constant(node: ast.AST) -> Site | None:
    match node:
        case ast.Constant(value=bool(value)):
            return node, "constant", str(not value)
        case ast.Constant(value=int(value) | float(value)):
            return node, "constant", repr(value + 1)
    return None


def _sign(node: ast.AST) -> Site | None:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return node, "sign", f"({ast.unparse(operand)})"
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return node, "not removed", f"({ast.unparse(operand)})"
    return None


def _negated(node: ast.AST) -> Site | None:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            pass
        case ast.comprehension(ifs=[test, *_]):
            pass
        case _:
            return None
    return None if _turned(test) else (test, "condition negated", f"(not ({ast.unparse(test)}))")


def _turned(test: ast.expr) -> bool:
    """Whether another change already makes the opposite of it."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return True
    return False


def _dropped(node: ast.AST) -> Site | None:
    """A statement is left out. Not one that gives a name its first value: that fails at once."""
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            return node, "dropped", "pass"
        case ast.Continue() | ast.Break():
            return node, "dropped", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return node, "dropped", "pass"
    return None


def _swapped(node: ast.AST) -> Site | None:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, second, *rest]):
            if name not in EITHER_WAY and type(first) is type(second) is not ast.Starred:  # else too easy
                return _instead(node, "arguments swapped", args=[second, first, *rest])
    return None


def _called(node: ast.AST) -> Site | None:
    match node:
        case ast.Call(func=ast.Name(id=name) as function) if name in CALLED:
            return function, "called", CALLED[name]
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in CALLED:
            return _instead(function, "called", attr=CALLED[name])
    return None


def _early(node: ast.AST) -> Site | None:
    """A function that returns nothing does nothing."""
    match node:
        case ast.FunctionDef(returns=ast.Constant(value=None), body=[ast.Expr(), first, *_] | [first]):
            return first, "early return", "return"
    return None


def _answered(node: ast.AST) -> Site | None:
    """The last answer of a function is no, or nothing."""
    if not isinstance(node, ast.FunctionDef) or not isinstance(node.body[-1], ast.Return):
        return None
    answer, told = node.body[-1], ast.unparse(node.returns) if node.returns is not None else ""
    if answer.value is None or isinstance(answer.value, ast.Constant):
        return None
    if told == "bool":
        return answer, "answer", f"return not ({ast.unparse(answer.value)})"
    return (answer, "answer", "return None") if told.endswith("| None") else None


ONE_OF: tuple[Callable[[ast.AST], Site | None], ...] = (
    _comparison,
    _arithmetic,
    _and_or,
    _constant,
    _sign,
    _negated,
    _dropped,
    _swapped,
    _called,
)
OF_FUNCTIONS: tuple[Callable[[ast.AST], Site | None], ...] = (_early, _answered)
