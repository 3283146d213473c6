"""Help pages with commands and options in named panels, as plain text.

Typer has panels only with rich, whose import doubles the time of `vseg --help`, and whose markup drops text in square
brackets. These classes read the same `rich_help_panel` of commands and options.
"""

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

# Newer versions of Typer contain a copy of Click, older ones depend on Click, so that Click's types have no fixed
# address: `ctx` is a Context and `formatter` a HelpFormatter.


class PanelCommand(TyperCommand):
    """A command whose help page shows its options by panel; options without a panel are in "Options"."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; a required argument has no braces."""
        pieces: list[str] = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{(\w+)\}", r"\1", piece) for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options of each panel."""
        _write_options(self, ctx, formatter)


class PanelGroup(TyperGroup):
    """A group whose help page shows its commands by panel; commands without a panel are in "Commands"."""

    command_class = PanelCommand

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands of each panel."""
        _write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line about each command, by panel."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        width = max(map(len, commands), default=0)
        rows: dict[str, list[tuple[str, str]]] = {}
        for name, command in commands.items():
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                summary = command.get_short_help_str(formatter.width - 6 - width)
                rows.setdefault(_get_title(panel, "Commands"), []).append((name.ljust(width), summary))
        _write_panels(rows, formatter)


def _write_options(command: TyperCommand | TyperGroup, ctx: Any, formatter: Any) -> None:
    rows: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            is_argument = param.param_type_name == "argument"
            name, text = record
            # Typer writes the type after the name of an argument, as in RESPONSES <path>.
            row = (name.split(" <")[0] if is_argument else name, _describe_ranges(text))
            title = _get_title(
                getattr(param, "rich_help_panel", None), "Arguments" if is_argument else "Options"
            )
            rows.setdefault(title, []).append(row)
    rows["Options"] = rows.pop("Options", [])  # --help and the like come last
    _write_panels(rows, formatter)


def _describe_ranges(text: str) -> str:
    """Write the range of a number in words: Typer writes x>=3 or 8<=x<=10000."""
    text = re.sub(r"(?<=[\[ ])([0-9.]+)<=x<=([0-9.]+)(?=[\];])", r"\1 to \2", text)
    return re.sub(r"(?<=[\[ ])x>=([0-9.]+)(?=[\];])", r"\1 or more", text)


def _get_title(panel: object, default: str) -> str:
    """Return the panel's name; Typer has a placeholder object where none was given."""
    return panel if isinstance(panel, str) else default


def _write_panels(rows: dict[str, list[tuple[str, str]]], formatter: Any) -> None:
    for title, panel_rows in rows.items():
        if panel_rows:
            with formatter.section(title):
                formatter.write_dl(panel_rows)
