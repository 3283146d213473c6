"""Counts of requests in tests/security, stored in results/ for the targets of targets.py.

Counts are used only if they were made with the current code.
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
def count_requests(file: str, part: str, results: Path = RESULTS) -> Iterator[Counter[str]]:
    """Store the counts of one test, however it ends; a failing test is counted under `failed`.

    A file belongs to the tests of one module, which run in one process; each part is stored separately.
    """
    counts: Counter[str] = Counter()
    tested = code_digest()  # before the test, because the code may be edited while it runs
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


def load_counts(results: Path = RESULTS) -> Notes:
    """Return the sums over all parts of each file that was written with the current code."""
    found = {file: _parts(results / f"{file}.json", code_digest()) for file in (GENERATED, MATRIX)}
    return {file: sum(map(Counter, parts.values()), Counter()) for file, parts in found.items() if parts}


def _parts(file: Path, tested: str) -> dict[str, dict[str, int]]:
    """Return the parts of a file; none if it is missing, damaged or from other code."""
    try:
        noted = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(noted["parts"]) if noted["code"] == tested else {}


def code_digest() -> str:
    """Return a digest of the tested sources and of their tests."""
    digest = hashlib.sha256()
    for folder in CODE:
        for file in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()
