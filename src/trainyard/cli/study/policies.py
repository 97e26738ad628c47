"""`trainyard policies`: every stage and preset in a line."""

from __future__ import annotations

from typing import Any

from trainyard.cli import options as o


def policies(json_: o.Json = False) -> None:
    """List all policy stages with one line each."""
    from trainyard.cli.shown.as_json import print_json
    from trainyard.policy.registry import DEFAULTS, ENTRIES, PRESETS

    if json_:
        known = ENTRIES.values()
        stages = [{"name": e.name, "stages": [*e.stages], "line": e.line, "paper": e.paper} for e in known]
        presets = [{"name": name, "preset": text} for name, text in PRESETS.items()]
        print_json(stages + presets + _of_packages())
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("stage", "name", "what it does")
    for entry in ENTRIES.values():
        mark = " (default)" if entry.name in DEFAULTS.values() else ""
        source = f" ({entry.paper})" if entry.paper else ""
        table.add_row("+".join(entry.stages), entry.name + mark, escape(entry.line + source))
    for name, text in PRESETS.items():
        table.add_row("preset", name, f"stands for {text}")
    for other in _of_packages():
        says = other["error"] if "error" in other else f"{other['line']} (package {other['package']})"
        table.add_row("+".join(other["stages"]) or "broken", other["name"], escape(says))
    console = Console()
    console.print(table)
    console.print(
        "Join names with +, parameters in brackets: las(threshold_gpu_s=3600:36000)+pack", highlight=False
    )


def _of_packages() -> list[dict[str, Any]]:
    """Return the stages that other packages bring; one that is broken says why."""
    from trainyard.errors import InputError
    from trainyard.policy.plugins import installed, load

    listed: list[dict[str, Any]] = []
    for plugin in installed():
        listed.append({"name": plugin.name, "stages": [], "package": plugin.package})
        try:
            entry = load(plugin)
            listed[-1] |= {"stages": list(entry.stages), "line": entry.line}
        except InputError as error:
            listed[-1] |= {"error": str(error)}
    return listed
