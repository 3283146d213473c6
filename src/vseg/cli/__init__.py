"""The command line: one file for each command, which parses its options, calls the library and prints the result.

simulate, fit, groups, evaluate, demo, plan, study, serve, lab, links, export, imports, simulate_participants,
backup, erase                   the commands
models, bench                   commands that have subcommands
help_panels                     help pages in panels
option_names                    errors of the library that name options
options                         options that Typer cannot parse
output                          the output folder of a command, and progress bars

Only Typer and the file of the command are imported at the start; a command imports numpy and the library when it runs.
"""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from vseg import __version__
from vseg.cli.help_panels import PanelCommand, PanelGroup
from vseg.cli.option_names import name_options
from vseg.errors import VsegError, VsegWarning

PANELS = {
    "Try": ("demo",),
    "Plan": ("plan", "simulate"),
    "Collect": (
        "study", "serve", "lab", "links", "simulate-participants", "export", "import", "import-jspsych",
    ),
    "Analyse": ("fit", "groups", "evaluate"),
    "Compare models": ("models", "bench"),
    "Maintain": ("backup", "restore", "erase"),
}  # fmt: skip
"""The commands in the order of --help; most are a function of that name in a file of that name."""
COMMANDS = {name: panel for panel, names in PANELS.items() for name in names}
"""The panel of each command."""
EXCEPTIONS = {
    "restore": ("backup", "restore"),
    "import": ("imports", "import_", "HELP"),
    "import-jspsych": ("imports", "import_", "HELP_JSPSYCH"),
}
"""The commands that are elsewhere: the file, the function, and the help text if it is not the docstring."""
COMPLETION_VARIABLE = "_VSEG_COMPLETE"  # Typer's, set by the shell when it asks for completions


class _CommandGroup(PanelGroup):
    """The commands in the order of `PANELS`; Typer puts those with subcommands last."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in COMMANDS if name in self.commands]


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"vseg {__version__}")
        raise typer.Exit


def vseg(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
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
    """Create the app with the command that the arguments name, or with all commands if they name none.

    Loading all commands takes longer than some commands do; --help and shell completion need all.
    """
    new_app = typer.Typer(
        cls=_CommandGroup,
        add_completion=True,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    new_app.callback()(vseg)
    names_one = arguments and arguments[0] in COMMANDS and COMPLETION_VARIABLE not in os.environ
    for name in arguments[:1] if names_one else COMMANDS:
        _add_command(new_app, name)
    return new_app


def _add_command(new_app: typer.Typer, name: str) -> None:
    file, *attributes = EXCEPTIONS.get(name) or [name.replace("-", "_")] * 2
    module = import_module(f"vseg.cli.{file}")
    command, *help_text = (getattr(module, attribute) for attribute in attributes)
    panel = COMMANDS[name]
    if isinstance(command, typer.Typer):
        for subcommand in command.registered_commands:
            subcommand.cls = PanelCommand
        new_app.add_typer(command, name=name, rich_help_panel=panel)
    else:
        text = help_text[0] if help_text else None
        new_app.command(name, cls=PanelCommand, help=text, rich_help_panel=panel)(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the `vseg` command and exit."""
    run_app(app(sys.argv[1:] if arguments is None else arguments), arguments, program="vseg")


def run_app(commands: typer.Typer, arguments: Sequence[str] | None = None, *, program: str) -> NoReturn:
    """Run a command line and exit: an error is one line on stderr and exit code 1, a warning one line and 0.

    An unexpected exception is one line and exit code 70; VSEG_DEBUG=1 adds its traceback.
    """
    words = sys.argv[1:] if arguments is None else arguments
    command = words[0] if words else ""
    # SIGINT too: Python leaves it ignored in a process that nohup or a script has started in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that temporary folders are removed
    with warnings.catch_warnings():
        warnings.simplefilter("always", VsegWarning)
        warnings.showwarning = partial(_show_warning, command)
        try:
            code = commands(arguments, prog_name=program, standalone_mode=False)
        except typer.BadParameter as error:
            # Without a cause, it is not the value: an option is missing, or another is needed with it.
            _fail(_describe_usage(error) if error.__cause__ is None else _describe_bad_value(error))
        except typer.TyperException as error:
            if not error.message:  # a command with subcommands was given none: its help page
                error.show()  # type: ignore[attr-defined]
                sys.exit(error.exit_code)
            _fail(_describe_usage(error))
        except typer.Abort:
            _fail("Aborted.")
        except VsegError as error:
            _fail(name_options(str(error), command))
        except MemoryError:
            _fail("Not enough memory; use a smaller --grid, --segments or --trials.")
        except OSError as error:
            file = f"{error.filename}: " if error.filename else ""
            _fail(f"{file}{error.strerror or error}.")
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception as error:
            _report_bug(error)
    sys.exit(code if isinstance(code, int) else 0)


def _describe_usage(error: typer.TyperException) -> str:
    """Return a sentence about a missing or unknown argument, option or command, and where to look it up."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "vseg"
    message: str = error.format_message()
    return f"{message if message.endswith(('.', '?')) else f'{message}.'} See {path} --help."


def _describe_bad_value(error: typer.BadParameter) -> str:
    """Return a sentence with the option, what was expected and what was typed."""
    option = error.param_hint or (error.param.opts[0] if error.param else "A value")
    # Typer checks values with pydantic.
    details: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
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


def _show_warning(command: str, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    name = "" if issubclass(category, VsegWarning) else f"{category.__name__}: "
    print(f"vseg: warning: {_one_line(name_options(f'{name}{message}', command))}", file=sys.stderr)


def _fail(message: str) -> NoReturn:
    print(f"vseg: {_one_line(message)}", file=sys.stderr)
    sys.exit(1)


def _report_bug(error: Exception) -> NoReturn:
    if os.environ.get("VSEG_DEBUG") == "1":
        traceback.print_exception(error)
    else:
        description = _one_line(f"{type(error).__name__}: {error}").rstrip(". :")
        print(
            f"vseg: unexpected error: {description}; run with VSEG_DEBUG=1 for the traceback and report it.",
            file=sys.stderr,
        )
    sys.exit(70)  # EX_SOFTWARE of sysexits.h


def _one_line(message: str) -> str:
    """Remove line breaks and control characters: messages quote names from files."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))
