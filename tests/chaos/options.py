"""Parse the options of `make chaos ARGS=...`; report mistakes in one sentence."""

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

DESCRIPTION = (
    "Tries every fault many times while participants answer, on SQLite, on PostgreSQL and in a real browser, and "
    "counts lost answers. Without options this takes about half an hour and ends with a table, written to "
    "results/chaos.html and docs/reliability.md. The exit code is 1 if anything was lost, doubled or changed, if "
    "a participant could not continue, if there were too few responses or faults, or if a killed server recovered too "
    "slowly. With --quick or --only a run is too short to check these targets; its table is written only to "
    "results/chaos-short.html."
)
QUICK = (
    "Run ten participants, each fault at most twice, and tabs on SQLite only, which takes 5 to 10 minutes."
)
ONLY = "Try only faults whose name contains these words; the names are below."
SEED = "Seed of the random times of faults, a whole number; the same seed repeats a run (default: 1)."
EXAMPLES = """examples:
  make chaos ARGS=--quick
  make chaos ARGS='--only "network cut" --seed 7'
"""


@dataclass(frozen=True)
class Options:
    """The options of a run; without --quick and --only it is a complete run."""

    quick: bool = False
    only: str = ""
    seed: int = 1

    @property
    def short(self) -> str:
        """Return the command of a short run; empty for a complete run."""
        only = [f'--only "{self.only}"'] if self.only else []
        given = " ".join((["--quick"] if self.quick else []) + only)
        return f"make chaos ARGS={_quoted(given)}" if given else ""


def parse_options(arguments: Sequence[str], names: Sequence[str]) -> Options:
    """Parse the options; on a mistake print one sentence and raise SystemExit. `names` are the faults."""
    parser = _parser(names)
    given, others = parser.parse_known_args(arguments)
    if others:
        parser.error(_unexpected(others[0]))
    if given.only is not None and not given.only.strip():
        parser.error(
            '--only: expected words from the name of a fault, such as --only "network cut", got none'
        )
    only = (given.only or "").strip()
    if not any(only in name for name in names):
        nearest = _nearest(only, names)
        parser.error(f'unknown fault "{only}"; did you mean "{nearest}"? The faults are: {"; ".join(names)}')
    try:
        return Options(given.quick, only, int(given.seed))
    except ValueError:
        parser.error(f'--seed: expected a whole number, such as 7, got "{given.seed}"')


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print only the message, without the usage, so that the mistake is easy to see."""
        said = message.removeprefix("argument ")
        self.exit(2, f"{said[0].upper()}{said[1:]}.\n")


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        usage="make chaos [ARGS='[--quick] [--only WORDS] [--seed NUMBER]']",
        description=DESCRIPTION,
        epilog=f"{EXAMPLES}\nfaults:\n" + "".join(f"  {name}\n" for name in names),
        formatter_class=_Layout,
        allow_abbrev=False,
    )
    parser.add_argument("--quick", action="store_true", help=QUICK)
    parser.add_argument("--only", metavar="WORDS", help=ONLY)
    parser.add_argument("--seed", default="1", metavar="NUMBER", help=SEED)
    return parser


class _Layout(argparse.HelpFormatter):
    """Wrap paragraphs, but keep the lines of texts that have several, such as the list of names."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _unexpected(word: str) -> str:
    if word.startswith("-"):
        return f"unknown option {word}; make chaos ARGS=--help lists the options"
    return f'unexpected word "{word}"; quote several words, as in make chaos ARGS=\'--only "network cut"\''


def _nearest(words: str, names: Sequence[str]) -> str:
    """Return the name that is most similar to these words, as a whole or in one of its words."""

    def similarity(name: str) -> float:
        parts = (name, *name.split())
        return max(difflib.SequenceMatcher(None, words.lower(), part.lower()).ratio() for part in parts)

    return max(names, key=similarity)


def _quoted(options: str) -> str:
    return f"'{options}'" if " " in options else options
