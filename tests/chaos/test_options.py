"""Test the options of `make chaos`, and the message about each mistake."""

import pytest

from chaos.options import Options, parse_options

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
    """The command of a short run is shown as it would be typed."""
    assert parse_options(arguments, NAMES) == options
    assert options.short == short


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", ""], '--only: expected words from the name of a fault, such as --only "network cut", got none.'),
        (["--only", " "], '--only: expected words from the name of a fault, such as --only "network cut", got none.'),
        (["--only"], "--only: expected one argument."),
        (
            ["--only", "netwrok"],
            f'Unknown fault "netwrok"; did you mean "network cut"? The faults are: {"; ".join(NAMES)}.',
        ),
        (["--seed", "abc"], '--seed: expected a whole number, such as 7, got "abc".'),
        (["--sed", "1"], "Unknown option --sed; make chaos ARGS=--help lists the options."),
        (
            ["--only", "network", "cut"],
            'Unexpected word "cut"; quote several words, as in make chaos ARGS=\'--only "network cut"\'.',
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_in_one_sentence(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse_options(arguments, NAMES)
    assert stopped.value.code == 2
    assert capsys.readouterr() == ("", f"{message}\n")


@pytest.mark.parametrize(("words", "nearest"), [("overtakn", 1), ("KILED", 2), ("sigkil", 2)])
def test_a_misspelt_word_suggests_the_most_similar_name(words, nearest, capsys):
    with pytest.raises(SystemExit):
        parse_options(["--only", words], NAMES)
    assert f'did you mean "{NAMES[nearest]}"?' in capsys.readouterr().err


def test_help_shows_commands_and_faults(capsys):
    with pytest.raises(SystemExit) as stopped:
        parse_options(["--help"], NAMES)
    output = capsys.readouterr().out
    assert stopped.value.code == 0
    assert output.startswith("usage: make chaos [ARGS=")
    assert "  make chaos ARGS='--only \"network cut\" --seed 7'\n" in output
    assert all(f"  {name}\n" in output for name in NAMES)
    assert ".py" not in output
