"""The `trainyard` command. Every verb imports what it needs when it runs, so that help is instant."""

from __future__ import annotations

import os
import sys

import typer

from trainyard._version import __version__
from trainyard.cli.operate import up
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
    help="Schedule deep-learning training jobs on shared GPU clusters: simulate, compare, plan.",
    add_completion=False,
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


app.command("simulate")(simulate.simulate)
app.command("compare")(compare.compare)
app.command("plan")(plan.plan)
app.command("policies")(policies.policies)
app.command("profile", context_settings={"allow_interspersed_args": False})(profile.profile)
app.command("fit")(fit.fit)
app.add_typer(trace.app, name="trace")
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("reproduce")(reproduce.reproduce)
app.command("up")(up.up)


def run() -> None:
    """Run the command line: 0 done, 2 the input is wrong (one line on stderr), 130 Ctrl-C, 1 any other."""
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="trainyard", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.stdout.flush()
    except InputError as error:
        _fail(str(error), 2)
    except TrainyardError as error:
        _fail(str(error), 1)
    except UsageProblem as error:
        _fail(explain(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", INTERRUPTED)
    except OSError as error:
        # What could not be written to stdout must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(1)  # the reader of our output went away; nothing is left to say
        _fail(str(error), 1)


def _fail(message: str, code: int) -> None:
    print(f"trainyard: error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
