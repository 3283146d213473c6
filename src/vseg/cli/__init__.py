"""The command line: one file a command, each of them parse, call, print.

simulate, fit, groups, evaluate, demo, plan, study, serve, lab, links, export, import, simulate-participants,
backup, restore, erase          the commands
models, bench, paper            commands with commands of their own
options                         numbers and names as they are typed
output                          an output folder that is whole or not there, progress bars, and counts

Only typer is imported here; numpy and everything above it is loaded inside the command that needs it.
"""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from vseg import __version__
from vseg.cli.backup import backup, restore
from vseg.cli.bench import bench
from vseg.cli.demo import demo
from vseg.cli.erase import erase
from vseg.cli.evaluate import evaluate
from vseg.cli.export import export
from vseg.cli.fit import fit
from vseg.cli.groups import groups
from vseg.cli.imports import HELP, HELP_JSPSYCH, import_
from vseg.cli.lab import lab
from vseg.cli.links import links
from vseg.cli.models import models
from vseg.cli.paper import paper
from vseg.cli.plan import plan
from vseg.cli.serve import serve
from vseg.cli.simulate import simulate
from vseg.cli.simulate_participants import simulate_participants
from vseg.cli.study import study
from vseg.errors import VsegError, VsegWarning

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (
    simulate,
    fit,
    groups,
    evaluate,
    demo,
    plan,
    serve,
    lab,
    links,
    export,
    simulate_participants,
    backup,
    restore,
    erase,
):
    app.command()(command)
app.command("import", help=HELP)(import_)
app.command("import-jspsych", help=HELP_JSPSYCH)(import_)
app.add_typer(study, name="study")
app.add_typer(models, name="models")
app.add_typer(bench, name="bench")
app.add_typer(paper, name="paper")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vseg {__version__}")
        raise typer.Exit


@app.callback()
def vseg(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure how a person segments an image, and how sure they are, from same/different judgments.

    \b
    Examples:
      vseg demo
      vseg simulate --grid 16 --segments 3 --blocks 10 --out sim
      vseg fit sim/responses.csv --grid 16 --segments 3 --out fit
      vseg evaluate fit/maps.npz --truth sim/truth.npz
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `vseg`; an error is one line on stderr and the exit code 1, a warning one line and 0.

    What nobody foresaw is a bug of ours: one line and 70, with the traceback if VSEG_DEBUG=1 is set.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that temporary folders are removed
    with warnings.catch_warnings():
        warnings.simplefilter("always", VsegWarning)
        warnings.showwarning = _show_warning
        try:
            app(arguments, prog_name="vseg")
        except VsegError as error:
            _fail(str(error))
        except MemoryError:
            _fail("There is not enough memory for this; take a smaller --grid, --segments or --trials.")
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _fail(f"{where}{error.strerror or error}.")
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception as error:
            _confess(error)
    sys.exit(0)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    name = "" if issubclass(category, VsegWarning) else f"{category.__name__}: "
    print(f"vseg: warning: {_one_line(f'{name}{message}')}", file=sys.stderr)


def _fail(message: str) -> NoReturn:
    print(f"vseg: {_one_line(message)}", file=sys.stderr)
    sys.exit(1)


def _confess(error: Exception) -> NoReturn:
    if os.environ.get("VSEG_DEBUG") == "1":
        traceback.print_exception(error)
    else:
        what = _one_line(f"{type(error).__name__}: {error}").rstrip(". :")
        print(
            f"vseg: unexpected error: {what}; run with VSEG_DEBUG=1 for the traceback and report it.",
            file=sys.stderr,
        )
    sys.exit(70)  # EX_SOFTWARE of sysexits.h


def _one_line(message: str) -> str:
    """Messages quote names from files: no line breaks, and nothing that steers a terminal."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))
