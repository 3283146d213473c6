"""Run a group of simulated participants in a child process of the server, so that they take no time from people.

The settings are a line of JSON on standard input, which the parent keeps open: the process exits when it ends. Each
event is a line of JSON on standard output.
"""

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from vseg._support.subprocesses import exit_with_parent
from vseg._support.user_code import load_function
from vseg.bots.group import load_borders, load_true_maps, run_bots
from vseg.errors import VsegError


def main() -> None:
    """Print {"done": 1} for each participant who is done, then {"summary": text} or {"failed": message}."""
    settings: dict[str, Any] = json.loads(sys.stdin.readline())
    exit_with_parent()
    truth, model = settings.pop("truth", None), settings.pop("model", None)
    events = sys.stdout

    def report(**event: int | str) -> None:
        print(json.dumps(event), file=events, flush=True)

    try:
        with redirect_stdout(sys.stderr):  # a user's model may print
            summary = run_bots(
                **settings,
                truth=load_true_maps(Path(truth)) if truth else None,
                borders=load_borders(Path(truth)) if truth else None,
                model=load_function(model) if model else None,
                progress=lambda done: report(done=done),
            )
        refused = f" {summary.refused} more could not take part: {summary.reason}" if summary.refused else ""
        report(summary=f"{summary}{refused}")
    except VsegError as error:
        report(failed=str(error))


if __name__ == "__main__":
    main()
