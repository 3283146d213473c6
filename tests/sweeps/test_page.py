"""Test the code of docs/simulating.md as a script that uses processes."""

import re
import subprocess
import sys
from pathlib import Path

from vseg.sweeps import Table

PAGE = Path(__file__).parent.parent.parent / "docs" / "simulating.md"


def test_the_code_of_the_page_runs_as_a_script(tmp_path):
    blocks = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    study, guarded = blocks[0], next(block for block in blocks if "__main__" in block)
    (tmp_path / "study.py").write_text(study + "\n\n" + guarded)
    subprocess.run([sys.executable, "study.py"], cwd=tmp_path, check=True, timeout=300)
    table = Table.load(tmp_path / "errors.csv")
    assert len(table) == 6 * 20
    assert (
        table.column("error", blocks=16, lapse=0.0).mean() < table.column("error", blocks=1, lapse=0.0).mean()
    )
    assert (tmp_path / "finished" / "trials.jsonl").read_text().count("\n") == 120
