"""Check the subject of a commit message: `python .ci/check_subject.py FILE`, as git's commit-msg hook calls it."""

import sys
from pathlib import Path

LONGEST = 72


def check_subject(message: str) -> str | None:
    """Return what is wrong with the first line of a commit message, or None."""
    subject = message.splitlines()[0].strip() if message.strip() else ""
    if not subject:
        return "The commit message has no subject; write one line in the imperative."
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return None
    if len(subject) > LONGEST:
        return f"The subject has {len(subject)} characters; expected at most {LONGEST}. Move details to the body."
    if subject.endswith("."):
        return "The subject ends with a full stop; remove it."
    return None


if __name__ == "__main__":
    problem = check_subject(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if problem:
        sys.exit(problem)
