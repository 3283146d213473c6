"""One Markdown table, printed and returned."""

from collections.abc import Sequence


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    lines = [f"## {title}", ""]
    lines += [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", note, ""] if note else [""]
    text = "\n".join(lines)
    print(text, flush=True)
    return text
