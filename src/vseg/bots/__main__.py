"""One run in a process of its own: settings as JSON on standard input, a JSON line for each thing that happens.

This is what the server starts when a researcher sends simulated participants, so that they take no time from people.
"""

import json
import sys
from pathlib import Path
from typing import Any

from vseg import bots, callables
from vseg.errors import VsegError


def main() -> None:
    """Lines {"done": 1} for participants who came to the end, then {"said": …} or {"failed": …}."""
    settings: dict[str, Any] = json.loads(sys.stdin.readline())
    truth, model = settings.pop("truth", None), settings.pop("model", None)
    try:
        summary = bots.run(
            **settings,
            truth=bots.maps_of(Path(truth)) if truth else None,
            model=callables.named(model) if model else None,
            progress=lambda done: _say(done=done),
        )
        refused = f" {summary.refused} more could not take part: {summary.reason}" if summary.refused else ""
        _say(said=f"{summary}{refused}")
    except VsegError as error:
        _say(failed=str(error))


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
