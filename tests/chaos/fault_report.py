"""The HTML page of `make chaos`: a report with one long table, whose header stays visible."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from vseg._support.html_report import Report, environment

TEMPLATES = Path(__file__).parent
TEXT_COLUMNS = ("fault", "where", "passed", "map")
"""Columns with words; all other columns hold numbers and are aligned to the right."""
LONGEST_NUMBER = 14  # characters; a longer cell of a numeric column contains a remark
STYLE = """
:root { --good: #1a7f37; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --good: #5bc27a; --bad: #ff8a80; } }
main { max-width: 78rem; }
.good { border-color: var(--good); color: var(--good); font-weight: 600; }
.bad { border-color: var(--bad); color: var(--bad); font-weight: 600; }
.faults th { white-space: nowrap; position: sticky; top: 0; background: var(--paper);
  box-shadow: inset 0 -1px var(--line); }
.faults td { white-space: nowrap; }
.faults td:first-child { white-space: normal; min-width: 15rem; }
.faults td.remark { white-space: normal; min-width: 8rem; }
.faults tr.all td { font-weight: 700; background: var(--tint); border-top: 2px solid var(--ink); }
.faults td.no { color: var(--bad); font-weight: 700; }
.sideways { display: none; color: var(--soft); font-size: .92rem; }
/* A sticky header stays visible only in the box that scrolls: if the table fits, let the page scroll instead. */
@media (min-width: 79rem) { .wide:has(.faults) { overflow: visible; } }
@media (max-width: 78.99rem) { .sideways { display: block; }
  .wide:has(.faults) { max-height: 85vh; overflow: auto; border: 1px solid var(--line); padding-left: .6rem; }
  .faults { margin-top: .4rem; } .faults td:first-child { min-width: 9rem; } }
@media print { .sideways { display: none; } .wide:has(.faults) { max-height: none; overflow: visible; } }
"""


class FaultReport(Report):
    """A report with a table of faults; the last row of the table is the sum of all others."""

    def faults(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str) -> None:
        """Add the table, with a hint on screens that are narrower than it."""
        numeric = [column for column in columns if column not in TEXT_COLUMNS]
        template = environment(TEMPLATES).get_template("faults.html")
        cells = [_describe_row(row, columns) for row in rows]
        self.markup(Markup(template.render(columns=columns, numeric=numeric, rows=cells, caption=caption)))

    def html(self) -> str:
        """Return the page with the style of the table added."""
        return super().html().replace("</style>", f"{STYLE}</style>", 1)


def _describe_row(row: Sequence[str], columns: Sequence[str]) -> dict[str, object]:
    """Return the cells of a row; a fault that was skipped has one remark instead of all other cells."""
    if not any(row[2:]):
        return {"fault": row[0], "remark": row[1]}
    cells = [{"text": text, "style": _style(text, column)} for text, column in zip(row, columns, strict=True)]
    return {"remark": "", "cells": cells}


def _style(text: str, column: str) -> str:
    """Return the CSS class of a cell: failures are highlighted, numbers with a remark may be broken into lines."""
    if text in ("NO", "OTHER"):
        return "no"
    if column in TEXT_COLUMNS:
        return ""
    return "number remark" if len(text) > LONGEST_NUMBER else "number"
