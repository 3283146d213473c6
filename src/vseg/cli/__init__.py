"""The command line: one file a command, each of them parse, call, print.

simulate, fit, groups, evaluate, demo, plan, study, serve, lab, links, export, import, simulate-participants,
backup, restore, erase          the commands
models, bench                   commands with commands of their own
options                         numbers and names as they are typed
output                          an output folder that is whole or not there, progress bars, and counts

Only typer is imported here, then the file of the command; numpy and everything above it is loaded inside the command
that needs it.
"""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from vseg import __version__
from vseg.errors import VsegError, VsegWarning

COMMANDS = (
    "simulate", "fit", "groups", "evaluate", "demo", "plan", "serve", "lab", "links", "export",
    "simulate-participants", "backup", "restore", "erase", "import", "import-jspsych", "study", "models", "bench",
)  # fmt: skip
"""As --help lists them; each is a function of its own name, in a file of that name."""
ELSEWHERE = {
    "restore": ("backup", "restore"),
    "import": ("imports", "import_", "HELP"),
    "import-jspsych": ("imports", "import_", "HELP_JSPSYCH"),
}
"""But for these: the file, the name there, and the name of the words for --help where it has none of its own."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vseg {__version__}")
        raise typer.Exit


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


def app(arguments: Sequence[str]) -> typer.Typer:
    """The command that is asked for, or all of them: loading the others would take longer than some commands do."""
    asked = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    asked.callback()(vseg)
    for name in arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS:
        file, *names = ELSEWHERE.get(name) or [name.replace("-", "_")] * 2
        command, *words = (getattr(import_module(f"vseg.cli.{file}"), each) for each in names)
        if isinstance(command, typer.Typer):
            asked.add_typer(command, name=name)
        else:
            asked.command(name, help=words[0] if words else None)(command)
    return asked


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the `vseg` command and exit."""
    run_app(app(sys.argv[1:] if arguments is None else arguments), arguments, program="vseg")


def run_app(commands: typer.Typer, arguments: Sequence[str] | None = None, *, program: str) -> NoReturn:
    """Run a command line and exit: an error is one line on stderr and exit code 1, a warning one line and 0.

    An unexpected exception is one line and exit code 70; VSEG_DEBUG=1 adds its traceback.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that temporary folders are removed
    with warnings.catch_warnings():
        warnings.simplefilter("always", VsegWarning)
        warnings.showwarning = _show_warning
        try:
            code = commands(arguments, prog_name=program, standalone_mode=False)
        except typer.BadParameter as error:
            if error.__cause__ is None:  # a missing option, or one that another needs
                _show_usage(error)
            _fail(_describe_bad_value(error))
        except typer.TyperException as error:
            _show_usage(error)
        except typer.Abort:
            _fail("Aborted.")
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
    sys.exit(code if isinstance(code, int) else 0)


def _show_usage(error: typer.TyperException) -> NoReturn:
    """Print the usage of the command and what is wrong, as Typer does."""
    error.show()  # type: ignore[attr-defined]
    sys.exit(error.exit_code)


def _describe_bad_value(error: typer.BadParameter) -> str:
    """Return a sentence with the option, what was expected and what was typed."""
    option = error.param_hint or (error.param.opts[0] if error.param else "A value")
    details: list[dict[str, Any]] = getattr(
        error.__cause__, "errors", list
    )()  # Typer checks values with pydantic
    kind, limits = (details[0]["type"], details[0].get("ctx", {})) if details else ("", {})
    expected = {
        "int_parsing": "a whole number",
        "float_parsing": "a number",
        "greater_than_equal": f"{limits.get('ge', 0):g} or more",
        "less_than_equal": f"{limits.get('le', 0):g} or less",
    }.get(kind)
    if expected is None:
        return f"{option}: {error.message.removeprefix('Value error, ')}"
    return f"{option}: expected {expected}, got {details[0]['input']!r}."


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
