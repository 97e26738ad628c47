"""The interactive report: one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from trainyard._version import __version__
from trainyard.errors import InputError
from trainyard.files.output import write_text_atomic
from trainyard.report import palette
from trainyard.report.added import added
from trainyard.report.cells import cell, heading
from trainyard.report.facts import facts, headline
from trainyard.report.fallback import who_decided
from trainyard.report.measures import MEASURES, Summary, number, winners, with_speedup, worth_showing
from trainyard.report.outcomes import how_they_ended
from trainyard.report.payload import payload
from trainyard.report.tenants import tenants_html
from trainyard.sim.result import Result

# How long the simulation itself took says nothing about a policy; its decision times do.
TABLE_KEYS = tuple(key for key in MEASURES if key != "wall_s")


def write_report(
    path: Path,
    results: Sequence[Result],
    title: str = "Policy comparison",
    options: Mapping[str, object] | None = None,
) -> None:
    """Write the report of several runs of the same workload; the others are compared with the first."""
    write_text_atomic(path, render_report(results, title, options))


def render_report(
    results: Sequence[Result], title: str = "Policy comparison", options: Mapping[str, object] | None = None
) -> str:
    """Return the whole report as text; the same results give the same bytes."""
    if not results:
        raise InputError("there are no results to report on")
    if any(r.outcomes.job_id != results[0].outcomes.job_id for r in results):
        raise InputError("the results are of different workloads: compare runs of the same jobs")
    plotly = _plotly_js()
    summaries = with_speedup([r.summary() for r in results])
    parts = {
        "title": escape(title),
        "headline": escape(headline(summaries)),
        "notes": "\n".join(map(_note, (how_they_ended(summaries), who_decided(results)))),
        "facts": _facts_html(facts(results[0], {**(options or {}), "version": f"trainyard {__version__}"})),
        "policies": _chips(results),
        "table": _table_html(summaries),
        "added": _added_html(results),
        "tenants": tenants_html(summaries),
        "colours": _colours_css(),
        "css": _asset("report.css"),
        "data": script_json(payload(results)),
        "plotly": plotly,
        "script": _asset("report.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], _asset("template.html"))


def script_json(value: object) -> str:
    """Write JSON that can stand inside a script element, whatever text it carries."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plotly_js() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise InputError("the HTML report needs plotly: pip install 'trainyard[plots]'") from error
    return str(get_plotlyjs())


def _asset(name: str) -> str:
    return resources.files("trainyard.report").joinpath(name).read_text(encoding="utf-8")


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>' if text else ""


def _facts_html(pairs: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in pairs)


def _added_html(results: Sequence[Result]) -> str:
    lines = "".join(f"<li><b>{escape(policy)}</b>: {escape(said)}</li>\n" for policy, said in added(results))
    return f'<ul class="added">\n{lines}</ul>' if lines else ""


def _swatch(index: int) -> str:
    colour, dash = palette.policy_style(index)
    return f'<i class="swatch {dash}" style="border-color: var(--c{colour})"></i>'


def _colours_css() -> str:
    def rule(colours: Sequence[str]) -> str:
        return ":root { " + " ".join(f"--c{i}: {colour};" for i, colour in enumerate(colours)) + " }"

    dark = f"@media (prefers-color-scheme: dark) {{ {rule(palette.POLICY_DARK)} }}"
    return f"{rule(palette.POLICY_LIGHT)}\n{dark}"


def _breakable(policy: str) -> str:
    """Let a long policy name wrap between its parts."""
    return re.sub(r"([+,])", r"\1<wbr>", escape(policy))


def _chips(results: Sequence[Result]) -> str:
    return "\n".join(
        f'<button type="button" class="chip" aria-pressed="true">{_swatch(i)}{escape(r.policy)}</button>'
        for i, r in enumerate(results)
    )


def _table_html(summaries: Sequence[Summary]) -> str:
    measures = [MEASURES[key] for key in TABLE_KEYS if worth_showing(key, summaries)]
    best = {m.key: winners(summaries, m) for m in measures}
    head = "".join(heading(m.label, m.meaning) for m in measures)
    rows = "\n".join(
        f'<tr><th scope="row" data-value="{i}">{_swatch(i)}{_breakable(str(summary["policy"]))}</th>'
        + "".join(cell(number(summary, m.key), m, i in best[m.key]) for m in measures)
        + "</tr>"
        for i, summary in enumerate(summaries)
    )
    return (
        f"<thead><tr>{heading('policy', 'in the order given')}{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>"
    )
