"""What can be wrong with an input: bytes, words, numbers, structure, options and names of policies."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

import yaml

from fuzz_files import Case
from trainyard.policy.parameters import parameters_of
from trainyard.policy.registry import ENTRIES, PRESETS

NUMBERS = (
    "0", "-0", "1", "-1", "2", "0.5", "3", "7", "1e-9", "1e-300", "5e-324", "1e9", "1e12", "1e15", "1e18",
    "1e30", "1e300", "1.7976931348623157e308", "1e400", "-1e30", "nan", "NaN", "inf", "-Infinity", ".inf",
    "-.inf", ".nan", "999999", "1000000", "1000001", "100000", "20000", "4294967296", "9223372036854775808",
    "0x10", "0b1", "0o17", "1_000", "1,5", "1e5", "12345678901234567890", "9" * 400, "0." + "0" * 200 + "1",
    "1e-5", "1000", "64", "300", "0.0001",
)  # fmt: skip
WORDS = (
    "", " ", "null", "~", "true", "no", "x", "-", "=", "<<", "?", "*a", "&a", "&a [*a]", "{}", "[]", "{",
    "]", "!!int x", "!!float x", "!!bool x", "!!binary x", "!!timestamp x", "!!set {a}", "!!omap [a]",
    "!!pairs [a]", "!!python/name:os.x", "!!null x", "!x y", "!!int ''", "!!float ''", "!!int 0x",
    "!!str 5", "1:60", "-1:x", "0b", "0x", "0o8", "2001-13-45", "2001-01-01", "2001-01-01 25:00:00",
    "9999999-01-01", "2024-02-30", "1e", ".", "+", "-.", "1__", "_1", "'", '"', "\\", "\t", "\r", "\ufeff",
    "\u2028", "\u0000", "\ud7ff", "é", "日本", "\U0001f600", "\u202e", "\\ud800", "%x", "%YAML 9.9", "---",
    "...", "# x", "| x", "> x", "@x", "`x`", "a" * 5000, "V100", "K80", "V100-0", "a", "resnet50", "plain",
    "failed", "ring", "ps", "none", "nodes", "jobs", "gpus", "job_id", "arrival_s", "1|2|4", "\"\\ud800\"",
    "inf", "\x1b[31m", "\x7f", "[1, 2", "{x: 1}", "{x: {y: 1}}", "[[[]]]", "0001", "0777", "١", "1 2",
    "NULL", "True", "1,2,3", "\n", "\r\n", ",", ",,,",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 64, 300, 1000, 20_000, 100_000, 10**6, 10**6 + 1, 2**31, 2**63,
    10**20, 10**400, 0.0, -0.0, 0.5, 1.5, 1e-5, 1e-9, 1e-300, 5e-324, 1e9, 1e12, 1e15, 1e18, 1e30, 1e300,
    1.7e308, -1e30, float("nan"), float("inf"), float("-inf"), "", " ", "x", "5", "1e400", "nan", "inf",
    "V100", "K80", "V100-0", "plain", "a", "failed", "ring", "ps", "\ud800", "\u2028", "a\nb", "\0", [], {},
    [1], [[]], {"x": 1}, {"": 1}, [None], [{}], [1, 2, 3], [float("nan")] * 3, {"V100": 0},
    {"V100": 1e-300}, {"K80": 1e300}, {"gpus": 1}, {"cpus": 1, "memory_gb": 1}, {"cpus": 0, "memory_gb": 0},
    {"cpus": 1e30, "memory_gb": 1e-30},
)  # fmt: skip
# Numbers that a file may have, at their edges; and what a number may be multiplied by.
LEGAL = (
    1e-12, 1e-9, 1e-6, 0.001, 0.01, 0.1, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 64, 100, 1000, 10_000,
    100_000, 10**6, 1e7, 1e9, 1e11, 1e12, 1e14, 1e15,
)  # fmt: skip
FACTORS = (0.0, 1e-9, 1e-6, 0.001, 0.1, 0.5, 0.99, 1.01, 2, 3, 10, 100, 1000, 1e6, 1e9, 1e12)
OPTIONS = (
    "--round-s", "--restart-s", "--start-s", "--seed", "--until-s", "--mtbf-h", "--repair-h", "--jobs",
    "--rate-per-h", "--duration-s", "--gpus", "--models", "--preset", "--format", "--batch",
    "--network-gbps", "--dataset-gb", "--storage-mbps", "--intra-gbps", "--policy", "--policies",
    "--profiles", "--failures", "--cluster", "--x", "--json",
)  # fmt: skip
OF_A_RUN = OPTIONS[:7]
# What may be asked for, and takes its time: a million jobs, thousands of rounds.
MODEST = dict.fromkeys(
    [("--jobs", n) for n in ("999999", "1000000", "1000001", "100000", "20000")], "1000"
) | {("--round-s", "0.5"): "5"}
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
WORD = re.compile(rb"[^\s,:{}\[\]\"']+")

Mutation = Callable[[bytes, Random], bytes]


def odd(draw: Random) -> bytes:
    """A number or a word that nobody expects."""
    return draw.choice(NUMBERS if draw.random() < 0.6 else WORDS).encode(errors="surrogatepass")


def _replaced(pattern: re.Pattern[bytes], data: bytes, draw: Random, new: bytes) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data + new
    at = draw.choice(found)
    return data[: at.start()] + new + data[at.end() :]


def number(data: bytes, draw: Random) -> bytes:
    """Another number in the place of one."""
    return _replaced(NUMBER, data, draw, draw.choice(NUMBERS).encode())


def scaled(data: bytes, draw: Random) -> bytes:
    """A number larger or smaller than it was, which may still be right."""
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    at = draw.choice(found)
    new = float(at[0]) * draw.choice(FACTORS) if draw.random() < 0.6 else draw.choice(LEGAL)
    text = str(int(new)) if float(new).is_integer() else repr(new)
    return data[: at.start()] + text.encode() + data[at.end() :]


def word(data: bytes, draw: Random) -> bytes:
    """Something else in the place of a word or a number."""
    return _replaced(WORD, data, draw, odd(draw))


def swapped(data: bytes, draw: Random) -> bytes:
    """A word of the file in the place of another."""
    found = WORD.findall(data) or [b"x"]
    return _replaced(WORD, data, draw, draw.choice(found))


def some_bytes(data: bytes, draw: Random) -> bytes:
    """A few bytes changed, put in or taken out."""
    out = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(out) + 1)
        kind = draw.random()
        if kind < 0.4:
            out[at : at + 1] = bytes([draw.randrange(256)])
        elif kind < 0.7:
            del out[at : at + draw.randint(1, 8)]
        else:
            out[at:at] = draw.choice(
                (b"\n", b",", b":", b" ", b"\t", b'"', b"'", b"{", b"}", b"[", b"]", b"-", b"&a ", b"*a")
            )
    return bytes(out)


def lines(data: bytes, draw: Random) -> bytes:
    """A line twice, gone, moved, or cut short."""
    rows = data.split(b"\n")
    at, to = draw.randrange(len(rows)), draw.randrange(len(rows))
    kind = draw.randrange(5)
    if kind == 0:
        rows.insert(to, rows[at])
    elif kind == 1:
        del rows[at]
    elif kind == 2:
        rows.insert(to, rows.pop(at))
    elif kind == 3:
        rows[at] = rows[at][: draw.randrange(len(rows[at]) + 1)]
    else:
        rows[at] = b"  " + rows[at] if draw.random() < 0.5 else rows[at].lstrip()
    return b"\n".join(rows)


def column(data: bytes, draw: Random) -> bytes:
    """A column of a table gone or filled with one odd value."""
    rows = [row.split(b",") for row in data.split(b"\n")]
    at, new = draw.randrange(len(rows[0])), odd(draw)
    gone, header = draw.random() < 0.4, draw.random() < 0.2
    for i, row in enumerate(rows):
        if at < len(row):
            if gone:
                del row[at]
            elif header or i:
                row[at] = new
    return b"\n".join(b",".join(row) for row in rows)


def nested(data: bytes, draw: Random) -> bytes:
    """Brackets without end in some place."""
    depth = draw.choice((5, 100, 3000, 100_000))
    opened, closed = draw.choice(((b"[", b"]"), (b'{"x":', b"}"), (b"- ", b""), (b"? ", b""), (b"(", b")")))
    inner = opened * depth + b"1" + closed * draw.choice((depth, 0))
    return _replaced(WORD, data, draw, inner) if draw.random() < 0.7 else inner


def zipped(data: bytes, draw: Random) -> bytes:
    """A gzip file, whole, cut, damaged, or with something behind it."""
    out = bytearray(gzip.compress(data, mtime=0))
    kind = draw.randrange(4)
    if kind == 0:
        return bytes(out[: draw.randrange(len(out))])
    if kind == 1:
        out[draw.randrange(len(out))] ^= 1 << draw.randrange(8)
    elif kind == 2:
        out += draw.choice((b"x", b"\0", bytes(out)))
    return bytes(out)


def unreadable(data: bytes, draw: Random) -> bytes:
    """Another encoding, another line end, nothing, or something else altogether."""
    text = data.decode("utf-8", errors="replace")
    other = (
        b"",
        b" \n",
        b"\0",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        b'"x"',
        b"1",
        b"---\n...\n---\n",
        b"\xef\xbb\xbf" + data,
    )
    coded = (text.encode("utf-16"), text.encode("latin-1", errors="replace"), data.replace(b"\n", b"\r"))
    return draw.choice((*other, *coded, data.replace(b"\n", b"\r\n"), data * 2, data.replace(b",", b";")))


def structure(data: bytes, draw: Random) -> bytes:
    """A part of a document replaced, renamed, doubled or gone; its form may change."""
    try:
        text = data.decode()
        if "\n{" in text.strip() and text.startswith("{"):
            rows = text.strip().split("\n")
            at = draw.randrange(len(rows))
            rows[at] = json.dumps(_changed(json.loads(rows[at]), draw))
            return "\n".join(rows).encode(errors="surrogatepass")
        changed = _changed(yaml.safe_load(text), draw)
        if draw.random() < 0.5:
            return json.dumps(changed, ensure_ascii=draw.random() < 0.5).encode(errors="surrogatepass")
        return str(yaml.safe_dump(changed, allow_unicode=True)).encode(errors="surrogatepass")
    except Exception:  # what was mutated before may be no document any more
        return word(data, draw)


def _changed(data: Any, draw: Random) -> Any:
    """Change one place of a structure, most often deep in it."""
    if not isinstance(data, (dict, list)) or not data or draw.random() < 0.02:
        return draw.choice(VALUES)
    key = draw.choice(list(data)) if isinstance(data, dict) else draw.randrange(len(data))
    inner, deeper = data[key], draw.random() < 0.7
    if deeper and isinstance(inner, (dict, list)) and inner:
        data[key] = _changed(inner, draw)
        return data
    kind = draw.random()
    if kind < 0.5 and isinstance(inner, (int, float)):
        data[key] = draw.choice(LEGAL)
    elif kind < 0.7:
        data[key] = draw.choice(VALUES)
    elif kind < 0.8:
        del data[key]
    elif isinstance(data, list):
        data.insert(draw.randrange(len(data) + 1), draw.choice(data))
    else:
        data[draw.choice((str(key) + "s", "x", "", 5, 1.5, True, None, "\ud800", "gpus", "V100"))] = data.pop(
            key
        )
    return data


MUTATIONS: tuple[tuple[Mutation, int], ...] = (
    (number, 5), (scaled, 12), (word, 4), (swapped, 3), (some_bytes, 4), (lines, 3), (column, 2),
    (nested, 1), (zipped, 1), (unreadable, 1), (structure, 10),
)  # fmt: skip


def odd_policy(text: str, draw: Random) -> str:
    """A policy with odd parameters, or a name that is almost one."""
    kind = draw.random()
    if kind < 0.75:
        entry = draw.choice(list(ENTRIES.values()))
        known = parameters_of(entry.make)
        names = draw.sample(list(known), draw.randint(0, min(2, len(known)))) if known else []
        given = ",".join(f"{name}={_odd_parameter(draw)}" for name in names)
        return f"{entry.name}({given})" + draw.choice(("", "", "+pack", "+srtf"))
    if kind < 0.85:
        return "+".join(draw.choice((*ENTRIES, *PRESETS)) for _ in range(draw.randint(1, 4)))
    at = draw.randrange(len(text) + 1)
    new = draw.choice(
        ("(", ")", "+", ",", "=", " ", "x", ":", "((", "\0", "日", "1", "\ud800", "a" * 5000, ")" * 5000)
    )
    return text[:at] + new + text[at + draw.randrange(2) :]


def _odd_parameter(draw: Random) -> str:
    if draw.random() < 0.15:
        return ":".join(draw.choice(NUMBERS) for _ in range(draw.randint(1, 4)))
    return draw.choice(NUMBERS if draw.random() < 0.8 else WORDS)


def odd_options(case: Case, draw: Random) -> None:
    """Change a command line: a value, an option more or less, or the policy."""
    argv = case.argv
    if argv[0] in ("simulate", "compare") and "--until-s" not in argv:
        argv += ["--until-s", "600"]  # there may be rounds from now on
    at = next((i + 1 for i, part in enumerate(argv) if part in ("--policy", "--policies")), None)
    kind = draw.random()
    if at is not None and kind < 0.6:
        argv[at] = odd_policy(argv[at], draw)
    elif kind < 0.85:
        name = draw.choice(OF_A_RUN if argv[0] in ("simulate", "compare") else OPTIONS)
        value = draw.choice(NUMBERS)
        argv += [name, MODEST.get((name, value), value)]
    elif kind < 0.92:
        argv.append(draw.choice(OPTIONS))
        if draw.random() < 0.8:
            argv.append(draw.choice(WORDS))
    else:
        i = draw.randrange(len(argv))
        argv[i] = draw.choice(WORDS) if draw.random() < 0.5 else argv[draw.randrange(len(argv))]


def mutate(case: Case, draw: Random) -> list[str]:
    """Make one to three things of a case odd; return what was done."""
    done = []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if not case.files or draw.random() < 0.25:
            odd_options(case, draw)
            done.append("options")
            continue
        name = draw.choice(list(case.files))
        change = draw.choices([m for m, _ in MUTATIONS], [w for _, w in MUTATIONS])[0]
        case.files[name] = change(case.files[name], draw)
        done.append(f"{name}: {change.__name__}")
    return done
