"""Running the command line in a test: `from commands import SMALL, vseg`."""

from pathlib import Path

import pytest

from reproduction import __main__ as reproduction_main
from vseg.cli import main, run_app

SMALL = "--grid 6 --segments 2 --blocks 6 --entropy 0.2"


def vseg(arguments: str, capsys) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def reproduction(arguments: str, capsys) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run_app(reproduction_main.app, arguments.split(), program="python -m reproduction")
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
