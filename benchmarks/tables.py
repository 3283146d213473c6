"""Markdown tables, printed and returned, and pages of sections that are renewed one by one."""

import platform
import re
import time
from collections.abc import Sequence
from pathlib import Path

NOT_REACHED = "**Not reached:**"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    lines = [f"## {title}", ""]
    lines += [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", note, ""] if note else [""]
    text = "\n".join(lines)
    print(text, flush=True)
    return text


def verdict(missed: Sequence[str]) -> str:
    """The last sentence of a section; run.py ends with 1 where something was not reached."""
    return f"{NOT_REACHED} {'; '.join(missed)}." if missed else "All of it was reached."


def renew(page: Path, header: str, name: str, text: str, order: Sequence[str]) -> None:
    """Put a section into a page in place of what it said before; the others stay as they were measured."""
    written = page.read_text(encoding="utf-8") if page.is_file() else ""
    found = dict(re.findall(r"<!-- (\w+) -->\n(.*?)(?=<!-- \w+ -->|\Z)", written, flags=re.DOTALL))
    where = f"{platform.machine()}, Python {platform.python_version()}"
    found[name] = f"{text.rstrip()}\n\n*Measured on {time.strftime('%Y-%m-%d')}: {where}.*\n\n"
    kept = [f"<!-- {each} -->\n{found[each]}" for each in order if each in found]
    page.write_text(f"{header}\n{''.join(kept)}", encoding="utf-8")
    print(f"Written to {page}", flush=True)
