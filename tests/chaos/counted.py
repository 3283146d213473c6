"""What the tests of tests/security have counted, kept in results/ for the numbers of wanted.py.

Only a note of the code at hand counts: what was counted before a change says nothing of it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "results"
CODE = ("src/vseg", "tests/security")
GENERATED, MATRIX = "counted-generated", "counted-matrix"
Notes = dict[str, Counter[str]]


@contextmanager
def counting(file: str, part: str, results: Path = RESULTS) -> Iterator[Counter[str]]:
    """Counts of one test, noted however it ends; a test that fails has counted itself under `failed`.

    A file belongs to the tests of one module, which run in one process; its parts are noted one by one.
    """
    counts: Counter[str] = Counter()
    tested = code()  # as it is now: who edits it meanwhile has another one in hand
    try:
        yield counts
    except BaseException:
        counts["failed"] += 1
        raise
    finally:
        results.mkdir(exist_ok=True)
        parts = _parts(results / f"{file}.json", tested) | {part: counts}
        text = json.dumps({"code": tested, "parts": parts}, indent=1)
        (results / f"{file}.json").write_text(text, encoding="utf-8")


def at_hand(results: Path = RESULTS) -> Notes:
    """The sums over all parts of each file that there is, and that the code at hand has written."""
    found = {file: _parts(results / f"{file}.json", code()) for file in (GENERATED, MATRIX)}
    return {file: sum(map(Counter, parts.values()), Counter()) for file, parts in found.items() if parts}


def _parts(file: Path, tested: str) -> dict[str, dict[str, int]]:
    """Nothing of a file that is not there, not whole, or of other code."""
    try:
        noted = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(noted["parts"]) if noted["code"] == tested else {}


def code() -> str:
    """A digest of the sources that were tested, and of what tests them."""
    digest = hashlib.sha256()
    for folder in CODE:
        for file in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()
