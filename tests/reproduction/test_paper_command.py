"""`python -m reproduction paper`, run from the command line."""

from commands import reproduction
from reproduction.paper import FIGURES


def test_list_names_every_figure(here, capsys):
    code, out, _ = reproduction("paper list", capsys)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[: len(FIGURES)]] == list(FIGURES)


def test_run_prints_verdicts_and_skips_finished_figures(here, capsys):
    code, out, error = reproduction(
        "paper run deterministic --resamples 2 --executor threads:1 --out p", capsys
    )
    assert (code, error) == (0, "")
    assert out.splitlines()[0].startswith("deterministic: 1 reproduced only if, from only 2 resamples; ")
    assert out.splitlines()[-1] == "p: 1 figure finished; see p/index.html."
    assert (here / "p" / "deterministic" / "figure.png").is_file()
    code, out, _ = reproduction("paper run deterministic --resamples 2 --executor threads:1 --out p", capsys)
    assert code == 0
    assert "(finished before)" in out


def test_bad_input_gives_a_one_line_error(here, capsys):
    for arguments, message in {
        "paper run bloks": "There is no figure 'bloks'; choose one of deterministic, losses, pairs",
        "paper run blocks --resamples 0": "--resamples: expected 1 or more, got '0'",
        "paper run blocks --quick --resamples 5": "either --quick or --resamples",
        "paper run blocks --executor cloud": "An executor is",
        "paper run blocks --seed x": "--seed: expected a whole number",
    }.items():
        code, out, error = reproduction(arguments, capsys)
        assert (code, out) == (1, "")
        assert message in error
        assert len(error.splitlines()) == 1
