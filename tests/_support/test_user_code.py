"""Test loading a function from a user's file, and the messages if it fails."""

import numpy as np
import pytest

from vseg._support import user_code
from vseg.errors import InvalidInput, NotFound

MINE = """
from beside import THREE

CONSTANT = 5


def model(image):
    return THREE


def other(image):
    return 4
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("THREE = 3\n")
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def test_functions_are_loaded_by_name_or_as_model(mine):
    assert user_code.load_function("mine.py")(None) == 3
    assert user_code.load_function("mine.py:other")(None) == 4
    assert user_code.load_function(f"{mine}/mine.py:other")(None) == 4


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("none.py", NotFound, "There is no file none.py"),
        ("mine", InvalidInput, "Expected FILE.py or FILE.py:NAME, got 'mine'"),
        ("mine.py:1x", InvalidInput, "Expected FILE.py or FILE.py:NAME"),
        (
            "mine.py:nothing",
            InvalidInput,
            "mine.py has no function nothing; it has model, other. Name one as",
        ),
        ("mine.py:CONSTANT", InvalidInput, "mine.py has no function CONSTANT"),
    ],
)
def test_missing_files_and_functions(mine, source, kind, message):
    with pytest.raises(kind, match=message):
        user_code.load_function(source)


def test_a_file_that_raises(mine):
    (mine / "broken.py").write_text("1 / 0\n")
    with pytest.raises(InvalidInput, match=r"broken\.py could not be run: ZeroDivisionError"):
        user_code.load_function("broken.py")


def test_errors_are_described_with_the_users_line(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy\n\ndef model(image):\n    return numpy.zeros((2, 3)) @ image\n"
    )
    try:
        user_code.load_function(str(tmp_path / "mine.py"))(np.zeros((2, 2)))
    except ValueError as error:
        message = user_code.describe_error(error)
    assert message.startswith("ValueError: ")
    assert message.endswith("(mine.py, line 4)")
