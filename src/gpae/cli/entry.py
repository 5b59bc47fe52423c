"""``gpae``: the list of commands, and what becomes of an error."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from gpae import __version__
from gpae.cli.bench import app as bench_app
from gpae.cli.data import app as data_app
from gpae.cli.demo import demo
from gpae.cli.doctor import doctor
from gpae.cli.explain import explain
from gpae.cli.fit import fit
from gpae.cli.report import report
from gpae.errors import GpaeError

__all__ = ["app", "main"]

FAULT, WRONG, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="gpae",
    help="Counterfactual explanations on tabular data: what would have to change for another decision.",
    epilog="Exit codes: 0 done; 2 the command or the input is wrong; 3 done, but some rows could not be "
    "read; 1 a fault of ours.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(fit)
app.command()(explain)
app.add_typer(bench_app, name="bench")
app.command()(report)
app.add_typer(data_app, name="data")
app.command()(doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpae {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    # Read by main(), which takes it at any place in the line; declared here so that the help shows it.
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the code a fault occurred.")] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    # For what gpae.waiting asks GNU's OpenMP alone, others have this; read when PyTorch is loaded, which is later.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(_run([word for word in given if word != "--debug"], debug))


def _run(arguments: list[str], debug: bool) -> int:
    try:
        app(arguments, prog_name="gpae")
    except SystemExit as end:  # how typer leaves, in every case that is no exception of ours
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code == INTERRUPTED:
            _say("interrupted")
        return code
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except GpaeError as error:
        _say(f"error: {error}", trace=debug)
        return WRONG
    except Exception as error:
        _say(_fault(error, debug), trace=debug)
        return FAULT
    return 0


def _fault(error: Exception, debug: bool) -> str:
    first_line = (str(error).splitlines() or [""])[0]
    how = "" if debug else " Run the same command with --debug to see where it happened, and"
    return (
        f"error: {type(error).__name__}: {first_line}\n"
        f"This is a fault of ours, not of your input.{how or ' Please'} report it with the command, this "
        "message and the output of `gpae doctor --json`."
    )


def _say(message: str, *, trace: bool = False) -> None:
    if trace:
        traceback.print_exc()
    typer.echo(message, err=True)
