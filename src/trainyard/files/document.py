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
from trainyard.files.position import LineOf, Path, Position
from trainyard.files.reading import StrPath, name_of, read_text


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key, count in Counter(key.value for key in names).items():
            if count > 1:
                mark = [name.start_mark for name in names if name.value == key][1]
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key}' is given twice; give it once", mark
                )
        return super().construct_mapping(node, deep)


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
    except ValueError:
        what = "a number or a date in it cannot be read; shorten the number or put the text in quotes"
        raise InputError(f"not valid YAML: {what}", where=where) from None


def _line_finder(text: str) -> LineOf:
    """Find lines by composing the text a second time, which only an error needs."""

    @cache
    def root() -> yaml.Node | None:
        try:
            node: yaml.Node | None = yaml.compose(text, _Loader)
            return node
        except (yaml.YAMLError, RecursionError):
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
