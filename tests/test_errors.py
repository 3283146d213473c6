"""The errors that vseg raises, and their base classes."""

import pytest

from vseg import errors


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("InvalidInput", ValueError),
        ("NotConverged", RuntimeError),
        ("NotFound", LookupError),
        ("Conflict", Exception),
        ("MissingExtra", ImportError),
        ("SchemaMismatch", Exception),
    ],
)
def test_each_error_is_a_vseg_error_and_a_builtin_error(name, builtin):
    error = getattr(errors, name)("A sentence.")
    assert isinstance(error, errors.VsegError)
    assert isinstance(error, builtin)
    assert str(error) == "A sentence."


def test_the_docstring_lists_all_errors():
    names = {error.__name__ for error in errors.VsegError.__subclasses__()}
    listed = {line.split()[1] for line in errors.__doc__.splitlines() if line[:1] in ("├", "└")}
    assert listed == names


def test_not_converged_has_the_unfinished_result():
    assert errors.NotConverged("It stopped early.", result=[1]).result == [1]
    assert errors.NotConverged("It stopped early.").result is None
