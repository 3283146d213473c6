"""Format Markdown tables, and replace single sections of a results page."""

import platform
import re
import time
from collections.abc import Sequence
from pathlib import Path

TARGETS_MISSED = "**Targets missed:**"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    lines = [f"## {title}", ""]
    lines += [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", note, ""] if note else [""]
    text = "\n".join(lines)
    print(text, flush=True)
    return text


def verdict(missed: Sequence[str]) -> str:
    """Return the last sentence of a section; run.py exits with 1 if a target was missed."""
    return f"{TARGETS_MISSED} {'; '.join(missed)}." if missed else "All targets were reached."


def replace_section(page: Path, header: str, name: str, text: str, order: Sequence[str]) -> None:
    """Replace one section of a page; the other sections keep their earlier measurements."""
    current = page.read_text(encoding="utf-8") if page.is_file() else ""
    sections = dict(re.findall(r"<!-- (\w+) -->\n(.*?)(?=<!-- \w+ -->|\Z)", current, flags=re.DOTALL))
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    sections[name] = f"{text.rstrip()}\n\n*Measured on {time.strftime('%Y-%m-%d')}: {machine}.*\n\n"
    ordered = [f"<!-- {section} -->\n{sections[section]}" for section in order if section in sections]
    page.write_text(f"{header}\n{''.join(ordered)}", encoding="utf-8")
    print(f"Written to {page}", flush=True)
