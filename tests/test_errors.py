"""The tree of errors."""

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
def test_each_error_is_a_vseg_error_and_its_builtin_kin(name, builtin):
    error = getattr(errors, name)("A sentence.")
    assert isinstance(error, errors.VsegError)
    assert isinstance(error, builtin)
    assert str(error) == "A sentence."


def test_tree_in_the_docstring_is_the_tree_in_the_code():
    names = {error.__name__ for error in errors.VsegError.__subclasses__()}
    drawn = {line.split()[1] for line in errors.__doc__.splitlines() if line[:1] in ("├", "└")}
    assert drawn == names


def test_not_converged_carries_what_it_had_reached():
    assert errors.NotConverged("It stopped early.", result=[1]).result == [1]
    assert errors.NotConverged("It stopped early.").result is None
