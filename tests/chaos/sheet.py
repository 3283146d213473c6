"""The page of `make chaos`: a report with one long table, whose header stays in sight."""

from collections.abc import Sequence
from html import escape

from vseg._support.html_report import Report

TEXTS = ("fault", "where", "passed", "map")
"""Columns of words; in all others numbers stand below each other."""
LONG = 14  # characters of a number; with more, words have come to it
MORE = "There are more columns: scroll sideways."
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
/* Whoever scrolls a box sees only its own header stay: where the table fits, the page is scrolled. */
@media (min-width: 79rem) { .wide:has(.faults) { overflow: visible; } }
@media (max-width: 78.99rem) { .sideways { display: block; }
  .wide:has(.faults) { max-height: 85vh; overflow: auto; border: 1px solid var(--line); padding-left: .6rem; }
  .faults { margin-top: .4rem; } .faults td:first-child { min-width: 9rem; } }
@media print { .sideways { display: none; } .wide:has(.faults) { max-height: none; overflow: visible; } }
"""


class Sheet(Report):
    """A report that can have a table of faults, the last row of which is of them all."""

    def faults(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str) -> None:
        """With a hint where it is wider than the screen."""
        kinds = ["" if column in TEXTS else "number" for column in columns]
        head = "".join(
            f'<th scope="col"{_of(kind)}>{escape(column)}</th>'
            for column, kind in zip(columns, kinds, strict=True)
        )
        *each, everything = (_cells(row, kinds) for row in rows)
        body = "".join(f"<tr>{cells}</tr>\n" for cells in each)
        self._parts.append(
            f'<p class="sideways">{MORE}</p><div class="wide" tabindex="0"><table class="many faults">'
            f"<caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
            f'<tbody>\n{body}<tr class="all">{everything}</tr>\n</tbody></table></div>'
        )

    def html(self) -> str:
        """The page, in its own style."""
        return super().html().replace("</style>", f"{STYLE}</style>", 1)


def _cells(row: Sequence[str], kinds: Sequence[str]) -> str:
    """A fault that was left out has a remark in place of everything else."""
    if not any(row[2:]):
        return f'<td>{escape(row[0])}</td><td class="remark" colspan="{len(row) - 1}">{escape(row[1])}</td>'
    return "".join(
        f"<td{_of(_kind(cell, kind))}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)
    )


def _kind(cell: str, kind: str) -> str:
    """What is wrong catches the eye; a number with a remark may take several lines."""
    if cell in ("NO", "OTHER"):
        return "no"
    return f"{kind} remark" if kind and len(cell) > LONG else kind


def _of(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
