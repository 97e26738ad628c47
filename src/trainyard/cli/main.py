"""The `trainyard` command. Every verb imports what it needs when it runs, so that help is instant."""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn

import typer

from trainyard._version import __version__
from trainyard.cli.jobs import cancel, hold, logs, ps, release, show, story, submit, wait
from trainyard.cli.jobs import run as run_job
from trainyard.cli.operate import down, drain, nodes, policy, status, up
from trainyard.cli.study import (
    compare,
    evaluate,
    fit,
    plan,
    policies,
    profile,
    reproduce,
    simulate,
    trace,
    train,
)
from trainyard.cli.usage import explain
from trainyard.compiled import compiled
from trainyard.errors import InputError, TrainyardError

# Click's base class of usage errors; typer brings its own click or uses the installed one, by version.
UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]
INTERRUPTED = 130  # as shells call it; newer versions of typer return it on Ctrl-C, older ones raise

app = typer.Typer(
    name="trainyard",
    help="Schedule deep-learning training jobs on shared GPU clusters: study policies, or run jobs by them.",
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trainyard {__version__}{' (compiled)' if compiled() else ''}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options that stand before a command."""


STUDY, JOBS, OPERATE = "Study", "Jobs", "Operate"
AS_IT_IS = {"allow_interspersed_args": False}  # the options of a command that is run are its own

app.command("simulate", rich_help_panel=STUDY)(simulate.simulate)
app.command("compare", rich_help_panel=STUDY)(compare.compare)
app.command("plan", rich_help_panel=STUDY)(plan.plan)
app.command("policies", rich_help_panel=STUDY)(policies.policies)
app.command("profile", rich_help_panel=STUDY, context_settings=AS_IT_IS)(profile.profile)
app.command("fit", rich_help_panel=STUDY)(fit.fit)
app.add_typer(trace.app, name="trace", rich_help_panel=STUDY)
app.command("train", rich_help_panel=STUDY)(train.train)
app.command("evaluate", rich_help_panel=STUDY)(evaluate.evaluate)
app.command("reproduce", rich_help_panel=STUDY)(reproduce.reproduce)

app.command("submit", rich_help_panel=JOBS, context_settings=AS_IT_IS)(submit.submit)
app.command("run", rich_help_panel=JOBS, context_settings=AS_IT_IS)(run_job.run)
app.command("ps", rich_help_panel=JOBS)(ps.ps)
app.command("show", rich_help_panel=JOBS)(show.show)
app.command("story", rich_help_panel=JOBS)(story.story)
app.command("logs", rich_help_panel=JOBS)(logs.logs)
app.command("cancel", rich_help_panel=JOBS)(cancel.cancel)
app.command("hold", rich_help_panel=JOBS)(hold.hold)
app.command("release", rich_help_panel=JOBS)(release.release)
app.command("wait", rich_help_panel=JOBS)(wait.wait)

app.command("up", rich_help_panel=OPERATE)(up.up)
app.command("down", rich_help_panel=OPERATE)(down.down)
app.command("status", rich_help_panel=OPERATE)(status.status)
app.command("nodes", rich_help_panel=OPERATE)(nodes.nodes)
app.command("drain", rich_help_panel=OPERATE)(drain.drain)
app.command("undrain", rich_help_panel=OPERATE)(drain.undrain)
app.add_typer(policy.app, name="policy", rich_help_panel=OPERATE)


LIVE = {"policy"} | {each.name for each in app.registered_commands if each.rich_help_panel != STUDY}


def run() -> None:
    """Run the command line: 0 done, 2 the input is wrong (one line on stderr), 130 Ctrl-C, 1 any other."""
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="trainyard", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.stdout.flush()
    except InputError as error:
        _fail(str(error), 2, getattr(error, "code", "invalid"), getattr(error, "field", None))
    except TrainyardError as error:
        _fail(str(error), 1, getattr(error, "code", "error"))
    except UsageProblem as error:
        _fail(explain(error), 2, "invalid")
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", INTERRUPTED, "interrupted")
    except OSError as error:
        # What could not be written to stdout must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(1)  # the reader of our output went away; nothing is left to say
        _fail(str(error), 1, "error")


def _fail(message: str, exit_code: int, code: str, field: str | None = None) -> NoReturn:
    """Say in one line what went wrong, and as JSON if the answer of a controller was asked for so."""
    message = " ".join(message.split())
    print(f"trainyard: error: {message}", file=sys.stderr)
    if _wants_json(sys.argv[1:]):
        print(json.dumps({"error": {"code": code, "message": message, "field": field}}))
    sys.exit(exit_code)


def _wants_json(words: list[str]) -> bool:
    own = words[: words.index("--")] if "--" in words else words
    return bool(own) and own[0] in LIVE and "--json" in own
