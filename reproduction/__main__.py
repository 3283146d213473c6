"""Run `python -m reproduction paper`, `annotators` or `expected-error` from a clone of vseg."""

import typer

from reproduction.annotators_command import annotators
from reproduction.expected_error_command import expected_error
from reproduction.paper_command import paper
from vseg.cli import run_app

HELP = """Regenerate the evidence for vseg: the paper's figures, and BSDS500's annotators as observers.

\b
Examples:
  python -m reproduction paper list
  python -m reproduction paper run all --quick --out paper
  python -m reproduction annotators BSDS500/data --images 20 --out annotators
  python -m reproduction expected-error BSDS500/data --out expected-error
"""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.add_typer(paper, name="paper")
app.command()(annotators)
app.command()(expected_error)

if __name__ == "__main__":
    run_app(app, program="python -m reproduction")
