"""`vseg study`: a new file runs as it is, and a check says what it costs or what is wrong."""

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from commands import vseg
from vseg.errors import InvalidInput
from vseg.study import texts
from vseg.study.schema import Study, load_study, parse_study
from vseg.study.sections import Section
from vseg.study.toml_errors import find_key_lines


def test_a_new_study_passes_its_check(here, capsys):
    code, out, err = vseg("study new my-study", capsys)
    assert (code, err) == (0, "")
    assert "vseg study check my-study.toml" in out
    code, out, err = vseg("study check my-study.toml", capsys)
    assert (code, err) == (0, "")
    for words in (
        "my-study",
        "1230",
        "minutes",
        "30 wanted; 15 for each image",
        "242 pairs on an 11x11 grid",
    ):
        assert words in " ".join(out.split())
    assert "Warning" not in out


def test_a_new_study_like_one_of_the_papers(here, capsys):
    code, out, err = vseg("study new mine --like texture", capsys)
    assert (code, err) == (0, "")
    assert out.startswith("mine.toml: a study like texture; its first lines say what it is.\n")
    code, out, _ = vseg("study check mine.toml", capsys)
    assert code == 0
    assert "5 blocks of 242 pairs and 0 catch trials" in " ".join(out.split())
    assert "Warning" not in out
    out = vseg("study new photos --like natural", capsys)[1]
    assert "Put your eight images into the folder photos-images: 1.jpg to 8.jpg." in out
    code, _, err = vseg("study check photos.toml", capsys)
    assert code == 1
    assert err.startswith("vseg: Study photos: 8 image files are missing, from photos-images")
    code, _, err = vseg("study new other --like film", capsys)
    assert code != 0
    assert "--like" in err


def test_a_file_that_exists_is_left_alone(here, capsys):
    Path("a.toml").write_text("mine")
    assert vseg("study new a", capsys) == (
        1,
        "",
        "vseg: a.toml exists; choose another name, or remove the file first.\n",
    )
    assert Path("a.toml").read_text() == "mine"


@pytest.mark.parametrize("name", ["My", "../x", "a.toml", "-", "a" * 64, "é"])
def test_names(name, here, capsys):
    code, _, err = vseg(f"study new -- {name}", capsys)
    assert code == 1
    assert err.startswith("vseg: Expected a name of at most 63 lower-case letters, digits and hyphens")
    assert not list(here.iterdir())


def uncomment(text: str) -> str:
    """The example with every setting switched on, but for the examples of texts."""
    switched = re.sub(r"^# (\[prolific\]|[a-z_]+ = (?!\"\"\"))", r"\1", text, flags=re.MULTILINE)
    return re.sub(r"^# .*$", "", switched, flags=re.MULTILINE)


def list_settings(table: type[Section], path=()):
    """Every key of the schema."""
    for name, field in table.model_fields.items():
        inside = [field.annotation, *getattr(field.annotation, "__args__", ())]
        inner = next((t for t in inside if isinstance(t, type) and issubclass(t, Section)), None)
        if inner is None:
            yield (*path, name)
        else:
            yield from list_settings(inner, (*path, name))


def test_the_example_lists_every_setting(here, capsys):
    vseg("study new all", capsys)
    text = Path("all.toml").read_text(encoding="utf-8")
    listed = set(find_key_lines(uncomment(text)))
    for path in list_settings(Study):
        where = ("images", 0, *path[1:]) if path[0] == "images" else path
        # An image has one source; the comment above it shows the others.
        assert where in listed or f"#   {path[-1]} = " in text, path


def test_a_wrong_value_of_any_setting_is_refused_with_its_line(here, capsys):
    """No setting takes a date, so every line of the example can be made wrong."""
    vseg("study new all", capsys)
    text = uncomment(Path("all.toml").read_text(encoding="utf-8"))
    text = re.sub(r"^(points|quota_per_condition|file) = .*$", "", text, flags=re.MULTILINE)
    written = text.replace('"between"', '"within"').split("\n")
    assert isinstance(parse_study("\n".join(written)), Study)
    for number, line in enumerate(written, start=1):
        if setting := re.match(r"[a-z_]+ = ", line):
            wrong = "\n".join([*written[: number - 1], f"{setting[0]}1979-05-27", *written[number:]])
            with pytest.raises(
                InvalidInput, match=rf'^study file, line {number}: .* should be .*, got "1979-05-27"\.'
            ):
                parse_study(wrong)


def test_the_example_with_every_default_is_the_same_study(here, capsys):
    """Defaults that are switched on change nothing."""
    vseg("study new all", capsys)
    example = load_study("all.toml")
    free = (
        r"points|photodiode|per_participant|quota_per_image|quota_per_condition|condition|completion_code|required|"
        r"debriefing|keep_identities_days"
    )
    text = re.sub(
        rf"^# (?!{free})([a-z_]+ = (?!\"\"\"))", r"\1", Path("all.toml").read_text(), flags=re.MULTILINE
    )
    Path("on.toml").write_text(text)
    on = load_study("on.toml")
    assert on.design.trials == 242
    assert on.model_copy(update={"design": example.design}) == example


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "segments = 2 ",
            "segments = 1 ",
            'line 12: segments should be a whole number from 2 to 12 or "free", got 1.',
        ),
        ("cue_ms = 300", "cue_ms = -1", "timing.cue_ms should be a whole number from 0 to 60000, got -1."),
        ("[[images]]", "[[images]", "this is not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_line(old, new, message, here, capsys):
    vseg("study new s", capsys)
    path = Path("s.toml")
    path.write_text(path.read_text().replace(old, new, 1))
    code, out, err = vseg("study check s.toml", capsys)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert re.match(r"vseg: s\.toml, line \d+: ", err)
    assert message in err


def test_no_file_and_no_image(here, capsys):
    assert vseg("study check no.toml", capsys) == (
        1,
        "",
        "vseg: No study file no.toml; `vseg study new` writes one.\n",
    )
    vseg("study new s", capsys)
    path = Path("s.toml")
    path.write_text(path.read_text().replace('\ntexture = "low"', '\nfile = "cat.png"'))
    code, out, err = vseg("study check s.toml", capsys)
    assert (code, out) == (1, "")
    assert err.startswith("vseg: Study s: there is no file cat.png for image 'texture-low'")


def test_files_are_looked_for_beside_the_study(here, capsys):
    """Wherever the command is run from."""
    from PIL import Image

    Path("inner").mkdir()
    Image.new("RGB", (100, 100)).save("inner/cat.png")
    vseg("study new s", capsys)
    text = Path("s.toml").read_text().replace('\ntexture = "low"', '\nfile = "cat.png"')
    Path("inner/s.toml").write_text(text)
    code, out, _ = vseg("study check inner/s.toml", capsys)
    assert code == 0
    assert "texture-low (100x100 px)" in out


def test_pairs_that_stand_in_for_chosen_ones_are_not_judged(here, capsys):
    vseg("study new s", capsys)
    path = Path("s.toml")
    assert "Pairs" in vseg("study check s.toml", capsys)[1]
    design = '[design]\nname = "adaptive"\ntrials = 200\nblocks = 1'
    path.write_text(path.read_text().replace("[design]\nblocks = 5", design))
    code, out, _ = vseg("study check s.toml", capsys)
    assert code == 0
    assert "Adaptive" in out
    assert not re.search(r"^Pairs|unconnected", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("design", "words"),
    [
        ("", "free; 5 are assumed for the number of pairs, and fits choose the number by evidence"),
        ('design = {name = "adaptive"}\n', "5 are assumed for the number of pairs and for choosing them"),
    ],
)
def test_an_assumed_number_of_segments_is_named(design, words, here, capsys):
    images = 'images = [{name = "patches", colours = 2}]\n'
    Path("s.toml").write_text(
        f'name = "s"\nsegments = "free"\nparticipants = 1\nlayout = {{grid = 4}}\n{images}{design}'
    )
    code, out, _ = vseg("study check s.toml", capsys)
    assert code == 0
    assert words in " ".join(out.split())


def test_warnings_are_shown(here, capsys):
    vseg("study new s", capsys)
    path = Path("s.toml")
    path.write_text(path.read_text().replace("participants = 30", "participants = 31"))
    code, out, _ = vseg("study check s.toml", capsys)
    assert code == 0
    assert "Warning 31 participants do not divide evenly over 2 images; take 32" in " ".join(out.split())


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_texts_can_be_put_into_a_study(language, here, capsys):
    code, out, _ = vseg(f"study texts {language}", capsys)
    assert code == 0
    assert {key: text.strip() for key, text in tomllib.loads(out).items()} == texts.load_texts(language)
    vseg("study new s", capsys)
    Path("s.toml").write_text(Path("s.toml").read_text() + out)
    assert load_study("s.toml").all_texts["leave"] == texts.load_texts(language)["leave"]


def test_an_unknown_language(here, capsys):
    assert vseg("study texts it", capsys) == (
        1,
        "",
        "vseg: Expected a language (en, fr, de), got 'it'; this command prints the default texts, which a study file "
        "can change in its table [texts].\n",
    )


def test_a_film_needs_a_browser_and_playwright(here, capsys, monkeypatch):
    vseg("study new s --like patches", capsys)
    with monkeypatch.context() as patched:
        for name in ("PATH", "PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
            patched.setenv(name, "/nowhere")
        code, out, err = vseg("study film s.toml", capsys)
    assert (code, out) == (1, "")
    assert err == (
        "vseg: No Chromium, Chrome or Edge was found, which a film is recorded with; install one of them (on Debian or "
        "Ubuntu: apt install chromium), or give the path of its program with --browser PATH.\n"
    )
    code, _, err = vseg("study film s.toml --browser no-such-browser", capsys)
    assert code == 1
    assert err.startswith(
        "vseg: Expected the path of a Chromium, Chrome or Edge browser, got 'no-such-browser'"
    )
    code, _, err = vseg(f"study film s.toml --browser {shutil.which('true')}", capsys)
    assert code == 1
    assert re.fullmatch(
        r"vseg: The browser .*true could not be started \(.*\); repair it, or .* --browser PATH\.\n", err
    )
    monkeypatch.setitem(sys.modules, "playwright", None)
    assert vseg("study film s.toml", capsys) == (
        1,
        "",
        'vseg: Filming a study needs playwright: pip install "vseg[film]".\n',
    )
