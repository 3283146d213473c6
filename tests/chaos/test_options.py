"""What `make chaos` can be told; of a mistake it says one sentence."""

import pytest

from chaos.options import Options, parsed

NAMES = ["network cut", "requests late, overtaken by others", "server killed (SIGKILL)"]


@pytest.mark.parametrize(
    ("arguments", "options", "short"),
    [
        ([], Options(), ""),
        (["--seed", "7"], Options(seed=7), ""),
        (["--quick"], Options(quick=True), "make chaos ARGS=--quick"),
        (["--only", " cut "], Options(only="cut"), "make chaos ARGS='--only \"cut\"'"),
        (
            ["--only", "network cut", "--quick"],
            Options(quick=True, only="network cut"),
            "make chaos ARGS='--quick --only \"network cut\"'",
        ),
    ],
)
def test_options(arguments, options, short):
    """Those that make a run short are told as they would be typed."""
    assert parsed(arguments, NAMES) == options
    assert options.short == short


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", ""], '--only needs words from the name of a fault, such as --only "network cut", but got none.'),
        (["--only", " "], '--only needs words from the name of a fault, such as --only "network cut", but got none.'),
        (["--only"], "--only: expected one argument."),
        (
            ["--only", "netwrok"],
            f'No fault is called "netwrok"; the nearest is "network cut", of these: {"; ".join(NAMES)}.',
        ),
        (["--seed", "abc"], '--seed needs a whole number, such as 7, but got "abc".'),
        (["--sed", "1"], "There is no option --sed; make chaos ARGS=--help lists those that there are."),
        (
            ["--only", "network", "cut"],
            '"cut" belongs to no option; several words need quotes, as in make chaos ARGS=\'--only "network cut"\'.',
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(arguments, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        parsed(arguments, NAMES)
    assert stopped.value.code == 2
    assert capsys.readouterr() == ("", f"{said}\n")


@pytest.mark.parametrize(("words", "nearest"), [("overtakn", 1), ("KILED", 2), ("sigkil", 2)])
def test_a_word_of_a_name_is_enough_to_find_the_nearest(words, nearest, capsys):
    with pytest.raises(SystemExit):
        parsed(["--only", words], NAMES)
    assert f'the nearest is "{NAMES[nearest]}"' in capsys.readouterr().err


def test_help_says_what_to_type(capsys):
    with pytest.raises(SystemExit) as stopped:
        parsed(["--help"], NAMES)
    said = capsys.readouterr().out
    assert stopped.value.code == 0
    assert said.startswith("usage: make chaos [ARGS=")
    assert "  make chaos ARGS='--only \"network cut\" --seed 7'\n" in said
    assert all(f"  {name}\n" in said for name in NAMES)
    assert ".py" not in said
