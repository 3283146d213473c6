"""One run in a process of its own: settings as JSON on standard input, a JSON line for each thing that happens.

This is what the server starts when a researcher sends simulated participants, so that they take no time from people.
"""

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from vseg import bots
from vseg._support import user_code
from vseg.errors import VsegError


def main() -> None:
    """Lines {"done": 1} for participants who came to the end, then {"said": …} or {"failed": …}."""
    settings: dict[str, Any] = json.loads(sys.stdin.readline())
    truth, model = settings.pop("truth", None), settings.pop("model", None)
    lines = sys.stdout

    def say(**what: Any) -> None:
        print(json.dumps(what), file=lines, flush=True)

    try:
        with redirect_stdout(sys.stderr):  # a user's model may print what it likes
            summary = bots.run(
                **settings,
                truth=bots.maps_of(Path(truth)) if truth else None,
                model=user_code.load_function(model) if model else None,
                progress=lambda done: say(done=done),
            )
        refused = f" {summary.refused} more could not take part: {summary.reason}" if summary.refused else ""
        say(said=f"{summary}{refused}")
    except VsegError as error:
        say(failed=str(error))


if __name__ == "__main__":
    main()
