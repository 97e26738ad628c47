"""What a policy adds to a plain one, in a sentence: its idea, its paper, and what became of completion times.

A plain policy only says who goes first, and is from no paper. Another one is compared with the plain one that
has the same order; if that is not there, or if it names no order, with the best plain one. One that joins
several ideas is also compared with the best policy that has only some of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from trainyard.policy.registry import DEFAULTS, Entry
from trainyard.report.fallback import fallback
from trainyard.report.measures import Summary, number
from trainyard.report.papers import cited, stages_of
from trainyard.sim.result import Result


class Row(NamedTuple):
    """One policy of a comparison, as the terms that differ from the defaults."""

    policy: str
    terms: frozenset[str]
    order: frozenset[str] | None  # None: it names no order
    ideas: list[Entry]  # none: it is a plain one
    summary: Summary
    left: str

    @property
    def jct_s(self) -> float:
        """Average completion time; NaN if it is not known."""
        value = number(self.summary, "avg_jct_s")
        return value if value > 0 else math.inf


def added(results: Sequence[Result]) -> list[tuple[str, str]]:
    """Return each policy that is more than an order, and what it adds."""
    rows = [_row(result) for result in results]
    return [(row.policy, _sentence(row, rows)) for row in rows if row.ideas]


def added_table(results: Sequence[Result]) -> Table | None:
    """Lay out what each policy adds; None if all are plain."""
    said = added(results)
    if not said:
        return None
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.title, table.title_justify, table.title_style = "What each adds", "left", "bold"
    table.add_column(overflow="fold")
    table.add_column()
    for policy, sentence in said:
        table.add_row(Text(policy), Text(sentence))
    return table


def _row(result: Result) -> Row:
    named = stages_of(result.policy)
    terms = {term: entry for term, entry in named.items() if term not in DEFAULTS.values()}
    orders = frozenset(term for term, entry in terms.items() if entry.stages == ("order",))
    ordered = any(entry.stages == ("order",) for entry in named.values())
    ideas = [entry for term, entry in terms.items() if entry.paper or term not in orders]
    order = orders if ordered else None
    return Row(result.policy, frozenset(terms), order, ideas, result.summary(), fallback(result))


def _sentence(row: Row, rows: Sequence[Row]) -> str:
    """Say what a policy does, whose idea that is, who decided instead, and how it compares."""
    names, papers = [entry.name for entry in row.ideas], cited(row.ideas)
    idea = f"{' and '.join(names)} together" if len(names) > 1 else row.ideas[0].idea
    source = f" ({'; '.join(papers)})" if papers else ""
    left = f"; {row.left}" if row.left else ""
    compared = [_against(row, other) for other in (_reference(row, rows), _best_part(row, rows)) if other]
    gain = f": average JCT {', '.join(compared)}" if compared else ""
    return f"{idea}{source}{left}{gain}."


def _reference(row: Row, rows: Sequence[Row]) -> Row | None:
    """The plain policy with the same order, or else the best plain one."""
    plain = [other for other in rows if not other.ideas and other is not row]
    same = [other for other in plain if other.terms == row.order]
    return min(same or plain, key=lambda other: other.jct_s, default=None)


def _best_part(row: Row, rows: Sequence[Row]) -> Row | None:
    """The best policy that has some of the ideas of this one, and no others."""
    parts = [other for other in rows if other.ideas and other.terms < row.terms]
    return min(parts, key=lambda other: other.jct_s, default=None)


def _against(row: Row, other: Row) -> str:
    ratio = row.jct_s / other.jct_s
    if not 0 < ratio < math.inf:
        return f"not comparable with {other.policy}"
    percent = round(100 * abs(ratio - 1))
    if not percent:
        return f"as {other.policy}"
    return f"{percent}% {'shorter' if ratio < 1 else 'longer'} than {other.policy}"
