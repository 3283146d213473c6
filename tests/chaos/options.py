"""What `make chaos ARGS=...` can be told, and what it says of a mistake: one sentence."""

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

DESCRIPTION = (
    "Tries every fault many times while people take part, on SQLite, on PostgreSQL and in a real browser, and counts "
    "what was lost. Without options this takes about half an hour and ends with a table, written to "
    "results/chaos.html and docs/reliability.md. The exit code is 1 if anything was lost, doubled or changed, if "
    "anybody was left without a way on, or if there were too few responses or faults, or a server that was killed came "
    "back too late. With --quick or --only a run is too short to judge those numbers; its table is written to "
    "results/chaos-short.html alone."
)
QUICK = "Try ten people, at most two of each fault, and tabs on SQLite alone, which takes 5 to 10 minutes."
ONLY = "Try only the faults that have these words in their name; the names are below."
SEED = "Choose the moments at which faults happen by this whole number, so that a run can be repeated (default: 1)."
EXAMPLES = """examples:
  make chaos ARGS=--quick
  make chaos ARGS='--only "network cut" --seed 7'
"""


@dataclass(frozen=True)
class Options:
    """As they were given; none of them makes a whole run."""

    quick: bool = False
    only: str = ""
    seed: int = 1

    @property
    def short(self) -> str:
        """The command of a run that is not a whole one; empty for one that is."""
        only = [f'--only "{self.only}"'] if self.only else []
        given = " ".join((["--quick"] if self.quick else []) + only)
        return f"make chaos ARGS={_quoted(given)}" if given else ""


def parsed(arguments: Sequence[str], names: Sequence[str]) -> Options:
    """Of the faults with these names; SystemExit after one sentence where something is wrong."""
    parser = _parser(names)
    given, others = parser.parse_known_args(arguments)
    if others:
        parser.error(_unexpected(others[0]))
    if given.only is not None and not given.only.strip():
        parser.error(
            '--only needs words from the name of a fault, such as --only "network cut", but got none'
        )
    only = (given.only or "").strip()
    if not any(only in name for name in names):
        nearest = _nearest(only, names)
        parser.error(f'no fault is called "{only}"; the nearest is "{nearest}", of these: {"; ".join(names)}')
    try:
        return Options(given.quick, only, int(given.seed))
    except ValueError:
        parser.error(f'--seed needs a whole number, such as 7, but got "{given.seed}"')


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Without the usage: whoever has made a mistake looks for what it was."""
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
    """Text is wrapped; what has lines of its own, as the list of names, keeps them."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _unexpected(word: str) -> str:
    if word.startswith("-"):
        return f"there is no option {word}; make chaos ARGS=--help lists those that there are"
    return f'"{word}" belongs to no option; several words need quotes, as in make chaos ARGS=\'--only "network cut"\''


def _nearest(words: str, names: Sequence[str]) -> str:
    """Like the whole of a name, or like a word in it."""

    def alike(name: str) -> float:
        parts = (name, *name.split())
        return max(difflib.SequenceMatcher(None, words.lower(), part.lower()).ratio() for part in parts)

    return max(names, key=alike)


def _quoted(options: str) -> str:
    return f"'{options}'" if " " in options else options
