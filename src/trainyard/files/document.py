"""YAML and JSON documents whose values know their line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable
from functools import cache
from typing import Any

import yaml

from trainyard.errors import InputError
from trainyard.files.checking import shown
from trainyard.files.position import LineOf, Path, Position
from trainyard.files.reading import StrPath, name_of, read_text

MOST_PARTS = 10_000_000  # of a document
TEXT, NUMBERS = "tag:yaml.org,2002:str", ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice, and says on which line a value cannot be read."""

    def get_single_node(self) -> yaml.Node | None:
        root: yaml.Node | None = super().get_single_node()
        if root is not None and _written_out(root, {}) > MOST_PARTS:
            what = f"with its aliases written out it has more than {MOST_PARTS} parts; use fewer aliases"
            raise yaml.constructor.ConstructorError(None, None, what, root.start_mark)
        return root

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> Any:
        tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        # YAML 1.1 takes 1:00 for 60 and 12:30:00 for 45000; people, JSON and YAML 1.2 mean the text.
        return TEXT if tag in NUMBERS and ":" in value and implicit[0] else tag

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError, MemoryError):
            raise
        except Exception:  # a value that is not of the form of its tag raises whatever comes to it
            what = f"{shown(str(node.value))} cannot be read as {_kind(node.tag)}"
            raise yaml.constructor.ConstructorError(
                None, None, f"{what}; shorten it or put it in quotes", node.start_mark
            ) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key, count in Counter(key.value for key in names).items():
            if count > 1:
                mark = [name.start_mark for name in names if name.value == key][1]
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key}' is given twice; give it once", mark
                )
        return super().construct_mapping(node, deep)


def _written_out(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for; an alias counts as all that it stands for."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = 1  # for an alias of what it is a part of
        pairs = isinstance(node, yaml.MappingNode)
        parts = (part for pair in node.value for part in pair) if pairs else iter(node.value)
        known[id(node)] = 1 + sum(_written_out(part, known) for part in parts)
    return known[id(node)]


def _kind(tag: str) -> str:
    """What a value should have been by its tag."""
    return {"int": "a number", "float": "a number", "timestamp": "a date"}.get(
        tag.rpartition(":")[2], f"'{tag}'"
    )


# YAML 1.1 takes 5e-5 for text; people, JSON and YAML 1.2 mean the number.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def load_document(path: StrPath, wanted: str) -> tuple[object, Position]:
    """Read a YAML or JSON file that should hold what is `wanted`; the place finds lines in it."""
    text, where = read_text(path, wanted), name_of(path)
    return _parsed(text, where), Position(where, _line_finder(text))


def _parsed(text: str, where: str) -> object:
    if text.lstrip()[0] != "{":
        return _from_yaml(text, where)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return _flow_yaml(text, where, error)


def _flow_yaml(text: str, where: str, json_error: Exception) -> object:
    """YAML may start with a brace too; what is neither is most likely JSON with a mistake."""
    try:
        return _from_yaml(text, where)
    except InputError:
        if where.endswith((".yaml", ".yml")) or not isinstance(json_error, json.JSONDecodeError):
            raise
        what = f"not valid JSON: {json_error.msg} at column {json_error.colno}"
        raise InputError(
            f"{what}; check commas, quotes and brackets", where=where, line=json_error.lineno
        ) from None


def _from_yaml(text: str, where: str) -> object:
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = f"not valid YAML: {error.problem or error.context}"
        if not isinstance(error, yaml.constructor.ConstructorError):
            what += "; check indentation, colons and brackets"
        raise InputError(what, where=where, line=mark.line + 1 if mark else None) from None
    except RecursionError:
        raise InputError("nested too deeply; a few levels must be enough", where=where) from None
    except yaml.reader.ReaderError as error:
        what = f"not valid YAML: it must not have the character {chr(error.character)!r}"
        raise InputError(what, where=where, line=text.count("\n", 0, error.position) + 1) from None
    except (ValueError, OverflowError):
        what = "an escaped character in it does not exist; write the character itself"
        raise InputError(f"not valid YAML: {what}", where=where) from None


def _line_finder(text: str) -> LineOf:
    """Find lines by composing the text a second time, which only an error needs."""

    @cache
    def root() -> yaml.Node | None:
        try:
            node: yaml.Node | None = yaml.compose(text, _Loader)
            return node
        except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
            return None

    def line_of(path: Path) -> int | None:
        node, line = root(), None
        for key in path:
            node, line = _step(node, key, line)
        return line or (node.start_mark.line + 1 if node else None)

    return line_of


def _step(node: yaml.Node | None, key: object, line: int | None) -> tuple[yaml.Node | None, int | None]:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == str(key):
                return value, name.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key].start_mark.line + 1
    return None, line or (node.start_mark.line + 1 if node else None)
