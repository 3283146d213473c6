"""A study file is read completely, or an error names the line and the reason."""

import re
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from vseg.data.layout import Grid, Scatter
from vseg.errors import InvalidInput, NotFound
from vseg.study import texts
from vseg.study.schema import Study, load_study, parse_study
from vseg.study.sections import TimingSection

FILE = """\
name = "cat"
segments = 3
participants = 10
layout = {grid = 16}
images = [{name = "cat", sample = "chelsea"}]
"""
TWO = FILE.replace("images = [", 'images = [{name = "dog", colours = 3, condition = "pets"}, ')


def error_message(text: str) -> str:
    with pytest.raises(InvalidInput) as error:
        parse_study(text, "s.toml")
    return str(error.value)


def test_a_minimal_study():
    study = parse_study(FILE)
    assert (study.name, study.segments, study.participants) == ("cat", 3, 10)
    assert study.layout.build() == Grid(16)
    assert (study.timing.cue_ms, study.timing.image_ms, study.timing.preview_ms) == (300, 300, 3000)
    assert (study.pairs_per_block, study.images_per_participant, study.quota("cat")) == (768, 1, 10)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "segments = 3",
            "segments = 1",
            'line 2: segments should be a whole number from 2 to 12 or "free", got 1.',
        ),
        (
            "segments = 3",
            "segments = 2.5",
            'line 2: segments should be a whole number from 2 to 12 or "free", got 2.5.',
        ),
        (
            "segments = 3",
            "segments = 'all'",
            'line 2: segments should be a whole number from 2 to 12 or "free", got "all".',
        ),
        (
            'name = "cat"\n',
            'name = "My Cat"\n',
            "line 1: name should be lower-case letters, digits and hyphens such as my-study, at most 63, "
            'got "My Cat".',
        ),
        (
            "participants = 10",
            "participants = true",
            "line 3: participants should be a whole number from 1 to 100000, got true.",
        ),
        (
            "participants = 10",
            'participants = "10"',
            'line 3: participants should be a whole number from 1 to 100000, got "10".',
        ),
        (
            "participants = 10",
            "participants = 10\npeople = 3",
            "line 4: there is no setting people; there are name, title",
        ),
        (
            "participants = 10",
            "participants = 10\nparticipant = 3",
            "line 4: there is no setting participant; did you mean participants?",
        ),
        (
            "participants = 10",
            "participants = 10\ncue_ms = 3",
            "line 4: there is no setting cue_ms; did you mean timing.cue_ms?",
        ),
        ("grid = 16", "grid = 2", "line 4: layout.grid should be a whole number from 3 to 64, got 2."),
        ("grid = 16", "grid = 16.0", "line 4: layout.grid should be a whole number from 3 to 64, got 16.0."),
        ("{grid = 16}", "16", "line 4: layout should be a table with settings such as grid, got 16."),
        ("{grid = 16}", "{}", "line 4: a layout is either grid = N or points = [[x, y], ...], got neither."),
        (
            "grid = 16",
            "points = [[0, 0], [0, 1], [1, 0], [1, 2]]",
            "line 4: layout.points[3][1] should be a number from 0 to 1, got 2.",
        ),
        (
            "grid = 16",
            "points = [[0, 0], [0, 1], [1, 0], [1]]",
            "line 4: layout.points[3][1] is missing; it should be a number from 0 to 1.",
        ),
        (
            "grid = 16",
            "points = [[0, 0], [0, 1], [1, 0], [0, 1]]",
            "line 4: layout.points: expected distinct positions; some of these 4 are equal.",
        ),
        ('sample = "chelsea"', "file = 3", "line 5: images[0].file should be a text, got 3."),
        (
            'sample = "chelsea"',
            "colours = 9",
            "line 5: images[0].colours should be a whole number from 2 to 8, got 9.",
        ),
        (
            'sample = "chelsea"',
            'file = "a.png", texture = "low"',
            "line 5: image 'cat' needs exactly one of file, sample, texture or colours, got file and texture.",
        ),
        (
            ', sample = "chelsea"',
            "",
            "line 5: image 'cat' needs exactly one of file, sample, texture or colours, got none.",
        ),
        (
            '{name = "cat"',
            '{name = "practice"',
            "line 5: 'practice' is the name of the practice image; choose another name.",
        ),
        (
            '{name = "cat", ',
            "{",
            "line 5: images[0].name is missing; it should be lower-case letters, digits",
        ),
        (
            '[{name = "cat", sample = "chelsea"}]',
            "[]",
            "line 5: images should be a list of tables of 1 to 1000 entries, got [].",
        ),
        (
            "images = [",
            'images = [{name = "cat", colours = 3},\n ',
            "line 6: two images are called 'cat'; give each a name of its own.",
        ),
        ("segments = 3", "segments = ", "line 2: this is not valid TOML, invalid value at column 12."),
        ("segments = 3\n", "", 'segments is missing; it should be a whole number from 2 to 12 or "free".'),
    ],
)
def test_errors_in_the_required_settings(old, new, message):
    assert FILE.count(old) == 1
    found = error_message(FILE.replace(old, new))
    assert re.sub(r"^s\.toml(, |: )", "", found).startswith(message)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[timing]\ncue_ms = -1", "line 7: timing.cue_ms should be a whole number from 0 to 60000, got -1."),
        (
            "[timing]\n\nimage_ms = 300.0",
            "line 8: timing.image_ms should be a whole number from 10 to 60000, got 300.0.",
        ),
        (
            "[timing]\ncue_ms = -1\nimage_ms = 0\npause_ms = 'no'",
            "line 7: timing.cue_ms should be a whole number from 0 to 60000, got -1.\n"
            "s.toml, line 8: timing.image_ms should be a whole number from 10 to 60000, got 0.\n"
            's.toml, line 9: timing.pause_ms should be a whole number from 0 to 60000, got "no".',
        ),
        (
            "[design]\nname = 'random'",
            'line 7: design.name should be "covering", "balanced", "scattered", "all", "oracle" or "adaptive", got '
            '"random".',
        ),
        (
            "[design]\ntrials = 3",
            "line 7: design.trials on a 16x16 grid should be 128 (every location once) to 32640 (every pair "
            "once), got 3.",
        ),
        (
            "[design]\nname = 'all'\ntrials = 200",
            'line 8: design.name = "all" asks all 32640 pairs; leave trials out',
        ),
        (
            "[design]\nsplit = 1000",
            "line 7: design.split is 1000, but 768 pairs can be split over at most 768 participants.",
        ),
        (
            "[design]\nname = 'all'\nblocks = 10",
            "line 6: one participant would have 326400 trials, and 100000 is the most;",
        ),
        ("[keys]\nsame = 'j'", "line 6: keys.same and keys.different need two keys, both are 'j'."),
        ("[keys]\ndifferent = 'f'", "line 7: keys.same and keys.different need two keys, both are 'f'."),
        ("[keys]\nsame = 'F'", "line 7: keys.same should be a lower-case letter, a digit, arrowleft,"),
        ("keys = 3", "line 6: keys should be a table with settings such as same, got 3."),
        (
            "[display]\nwidth_deg = 0",
            "line 7: display.width_deg should be a number above 0 and up to 60, got 0.",
        ),
        (
            "[display]\nwidth_deg = nan",
            "line 7: display.width_deg should be a number above 0 and up to 60, got nan.",
        ),
        (
            "[display]\nrefresh_hz = inf",
            "line 7: display.refresh_hz should be a number from 0 to 1000, got inf.",
        ),
        (
            "[display]\nwindow_px = 800",
            "line 7: display.window_px should be a list of 2 values, each a whole number from 0 to 20000, got 800.",
        ),
        (
            "[display]\nwindow_px = [800, 600.5]",
            "line 7: display.window_px[1] should be a whole number from 0 to 20000, got 600.5.",
        ),
        ("[practice]\nfeedback = 'yes'", 'line 7: practice.feedback should be true or false, got "yes".'),
        ("breaks = {every_trials = 100,\n at_least_s = 601}", "line 6: this is not valid TOML"),
        (
            "breaks = {every_trials = 100, at_least_s = 601}",
            "line 6: breaks.at_least_s should be a whole number from 0 to 600, got 601.",
        ),
        (
            "[prolific]\nrequired = true",
            "line 6: prolific.completion_code is missing; it should be the code that Prolific shows",
        ),
        ("[texts]\nconsnt = 'a'", "line 7: there is no text 'consnt'; did you mean consent?"),
        (
            "[texts]\nbreak = '''\n{minutes}\n'''",
            "line 7: the text break has {minutes}, which the page does not fill in; this text can have {percent}.",
        ),
        ("[texts]\nconsent = 3", "line 7: texts.consent should be a text, got 3."),
        (
            "[assignment]\nper_participant = 2",
            "line 7: assignment.per_participant is 2, but the study has 1 image.",
        ),
        (
            "[assignment]\nquota_per_condition = {a = 3}",
            "line 7: assignment.quota_per_condition names 'a', but no image has that condition.",
        ),
        (
            "[assignment.quota_per_condition]\na = -3",
            "line 7: assignment.quota_per_condition.a should be a whole number from 0 to 1000000, got -3.",
        ),
        ("language = 'it'", 'line 6: language should be "en", "fr" or "de", got "it".'),
        ("seed = -1", "line 6: seed should be a whole number from 0 to below 9223372036854775808, got -1."),
        ("title = 3", "line 6: title should be a text of at most 200 characters, got 3."),
        ("[[images]]\nname = 'b'", "line 6: this is not valid TOML"),
    ],
)
def test_errors_in_the_other_tables(table, message):
    assert error_message(FILE + table).removeprefix("s.toml, ").startswith(message)


def test_several_images_per_participant_need_within():
    message = error_message(TWO + "[assignment]\nper_participant = 2")
    assert message == (
        's.toml, line 7: assignment.per_participant is 2, but images = "between" shows one; write images = "within".'
    )


def test_all_pairs_of_many_locations_are_too_many():
    message = error_message(FILE.replace("grid = 16", "grid = 64") + "[design]\nname = 'all'\nsplit = 1000")
    assert message.startswith(
        "s.toml, line 7: a block on a 64x64 grid would have 8386560 pairs, and 100000 is the most;"
    )


def test_the_line_of_an_image_in_its_own_table():
    text = (
        FILE.partition("images")[0]
        + '[[images]]\nname = "a"\ncolours = 3\n[[images]]\nname = "b"\ncolours = 1\n'
    )
    assert (
        error_message(text)
        == "s.toml, line 10: images[1].colours should be a whole number from 2 to 8, got 1."
    )


@pytest.mark.parametrize(
    ("texture", "message"),
    [
        (
            '"mid"',
            'images[0].texture should be "low" or "high" or a table with settings such as preset, got "mid".',
        ),
        ("{spread_deg = 0}", "images[0].texture.spread_deg should be a number above 0 and up to 90, got 0."),
        ("{sprad_deg = 5}", "there is no setting images[0].texture.sprad_deg; did you mean spread_deg?"),
        (
            "{orientations_deg = [1, 2, 3]}",
            "images[0].texture.orientations_deg should be a list of 2 values, each a number from -180 to 180, "
            "got [1, 2, 3].",
        ),
    ],
)
def test_errors_in_a_texture(texture, message):
    text = FILE.replace('sample = "chelsea"', f"texture = {texture}")
    assert error_message(text) == f"s.toml, line 5: {message}"


def test_long_values_are_shortened():
    assert len(error_message(FILE + f"language = '{1000 * 'x'}'")) < 200


def test_lists_are_read_as_tuples_and_integers_as_floats():
    study = parse_study(FILE + "[display]\nwindow_px = [1000, 700]\nwidth_deg = 8\n")
    assert study.display.window_px == (1000, 700)
    assert study.display.width_deg == 8.0


def test_free_points_and_free_segments():
    points = "[[0, 0], [0, 1], [1, 0], [0.5, 1]]"
    study = parse_study(
        FILE.replace("{grid = 16}", f"{{points = {points}}}").replace("segments = 3", 'segments = "free"')
    )
    assert study.layout.build() == Scatter([[0, 0], [0, 1], [1, 0], [0.5, 1]])
    assert (study.planned_segments, study.pairs_per_block) == (5, 6)


@pytest.mark.parametrize(
    ("assignment", "each", "quota"),
    [
        ("", 1, 5),
        ('images = "within"', 2, 10),
        ('images = "within"\nper_participant = 1', 1, 5),
        ("quota_per_image = 3", 1, 3),
    ],
)
def test_quotas(assignment, each, quota):
    study = parse_study(f"{TWO}[assignment]\n{assignment}")
    assert (study.images_per_participant, study.quota("cat")) == (each, quota)


def test_texts_of_the_study_replace_the_defaults():
    study = parse_study(FILE + 'language = "de"\n[texts]\nconsent = "Wir."')
    assert (study.all_texts["consent"], study.all_texts["continue"]) == ("Wir.", "Weiter")


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_the_debriefing_mentions_catch_trials_only_if_there_are_any(language):
    defaults = texts.load_texts(language)
    debriefing, of_catch = defaults["debriefing"], defaults["debriefing_catch"]

    def written(per_block: int, more: str = "") -> str:
        text = f'{FILE}language = "{language}"\ncatch = {{per_block = {per_block}}}\n{more}'
        return parse_study(text).all_texts["debriefing"]

    assert written(0) == debriefing
    assert written(1) == f"{debriefing}\n\n{of_catch}"
    assert written(1, '[texts]\ndebriefing = "Ours."') == "Ours."
    assert written(0, '[texts]\ndebriefing_catch = "Known."') == debriefing
    assert written(1, '[texts]\ndebriefing = "Ours."\ndebriefing_catch = "Known."') == "Ours.\n\nKnown."


def test_a_study_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        parse_study(FILE).name = "dog"


@given(st.integers(2, 12), st.integers(1, 100_000), st.integers(3, 64), st.integers(0, 2**63 - 1))
def test_every_number_in_range_is_accepted(segments, participants, grid, seed):
    text = f'name = "a"\nsegments = {segments}\nparticipants = {participants}\nlayout = {{grid = {grid}}}\n'
    study = parse_study(
        f'{text}seed = {seed}\nimages = [{{name = "b", colours = 2}}]\n[design]\ntrials = {grid**2}\nblocks=1'
    )
    assert (study.segments, study.participants, study.layout.grid, study.seed) == (
        segments,
        participants,
        grid,
        seed,
    )


@given(st.text(max_size=300))
def test_any_text_is_a_study_or_raises_invalid_input(text):
    for content in (text, FILE + text):
        with suppress(InvalidInput):
            assert isinstance(parse_study(content), Study)


def test_files(tmp_path):
    path = tmp_path / "s.toml"
    with pytest.raises(NotFound, match=r"No study file .*s\.toml; `vseg study new` writes one\."):
        load_study(path)
    path.write_bytes(FILE.encode("utf-8-sig").replace(b"\n", b"\r\n"))
    assert load_study(path) == parse_study(FILE)
    path.write_bytes(b"name = \xff")
    with pytest.raises(InvalidInput, match="is not UTF-8 text"):
        load_study(path)
    path.write_text("#" * 1_000_001)
    with pytest.raises(InvalidInput, match="has 1000001 bytes; a study file has at most 1000000"):
        load_study(path)
    with pytest.raises(NotFound):
        load_study(tmp_path)


def test_the_lab_table():
    plain = parse_study(FILE)
    assert (plain.lab.photodiode, plain.lab.markers) == (None, False)
    lab = parse_study(FILE + 'lab = {markers = true, photodiode = {corner = "top-left"}}').lab
    assert lab.markers
    assert (lab.photodiode.corner, lab.photodiode.size_px, lab.photodiode.phase) == ("top-left", 80, "image")


@pytest.mark.parametrize(
    ("lab", "message"),
    [
        ('photodiode = {corner = "left"}', 'lab.photodiode.corner should be'),
        ("photodiode = {size_px = 2}", "lab.photodiode.size_px should be a whole number from 8 to 1000, got 2."),
        ('photodiode = {phase = "response"}', 'should be "cue" or "image", got "response".'),
        ("markers = 1", "lab.markers should be true or false, got 1."),
        ("patch = true", "patch"),
    ],
)  # fmt: skip
def test_errors_in_the_lab_table(lab, message):
    found = error_message(f"{FILE}[lab]\n{lab}\n")
    assert found.startswith("s.toml, line 7: ")
    assert message in found


def test_an_adaptive_design_is_one_block_of_fresh_pairs():
    design = parse_study(adaptive("trials = 100, target_error = 0.05")).design
    assert (design.is_adaptive, design.blocks, design.pairs) == (True, 1, "fresh")
    assert (design.rule, design.shared, design.least_trials) == ("variance_reduction", False, None)
    assert parse_study(adaptive("trials = 100")).min_pairs == 100
    assert (
        parse_study(adaptive("trials = 100, target_error = 0.05")).min_pairs == 22
    )  # one for every three locations
    assert parse_study(adaptive("trials = 100, target_error = 0.05, least_trials = 40")).min_pairs == 40


def adaptive(more: str, name: str = "adaptive") -> str:
    return (
        'name = "ada"\nsegments = 2\nparticipants = 3\nlayout = {grid = 8}\nimages = [{name = "a", colours = 2}]\n'
        f'design = {{name = "{name}", {more}}}\n'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (adaptive("blocks = 2"), "an adaptive design has design.blocks = 1, .* got 2; leave it out"),
        (adaptive('pairs = "repeated"'), "an adaptive design has design.pairs = 'fresh', .* got 'repeated'"),
        (adaptive("split = 3"), "an adaptive design has design.split = 1"),
        (
            adaptive("shared = true", "covering"),
            "design.shared needs design.name = \"adaptive\", got 'covering'",
        ),
        (adaptive("least_trials = 50"), "design.least_trials needs design.target_error, the error at which"),
        (adaptive("trials = 60, target_error = 0.1, least_trials = 61"), "at most 60 trials per image"),
        (
            adaptive("target_error = 1.0"),
            "design.target_error should be a number above 0 and below 1, got 1.0",
        ),
        (adaptive('rule = "guess"'), "design.rule should be"),
    ],
)
def test_errors_in_an_adaptive_design(text, message):
    with pytest.raises(InvalidInput, match=f"line 6: .*{message}"):
        parse_study(text)


def test_a_number_with_too_many_digits():
    """Python reads hexadecimal numbers of any length, but does not print more than 4300 decimal digits."""
    with pytest.raises(InvalidInput, match=r"segments should be .*, got a number of thousands of digits"):
        parse_study(f'name = "a"\nsegments = 0x{"f" * 6000}\n')


def test_the_largest_study_is_within_the_limits_of_the_parser():
    points = ", ".join(f"[{(x + 0.5) / 64}, {(y + 0.5) / 64}]" for x in range(64) for y in range(64))
    images = "".join(
        f'[[images]]\nname = "i{n}"\ncolours = 2\nseed = {n}\nsquare = true\ncondition = "c{n}"\n'
        for n in range(1000)
    )
    quotas = "".join(f"c{n} = 1\n" for n in range(1000))
    study = parse_study(
        f'name = "large"\nsegments = 2\nparticipants = 9\nlayout = {{points = [{points}]}}\n{images}'
        f"[assignment.quota_per_condition]\n{quotas}"
    )
    assert (len(study.images), len(study.layout.build())) == (1000, 4096)


def test_many_unknown_settings():
    """Only the settings that the message names are compared with those that exist."""
    with pytest.raises(InvalidInput) as error:
        parse_study("".join(f"nmae{number} = 1\n" for number in range(20_000)), "s.toml")
    lines = str(error.value).splitlines()
    assert lines[0] == "s.toml, line 1: there is no setting nmae0; did you mean name?"
    assert len(lines) == 21
    assert lines[-1] == f"{20_000 + 5 - 20} more settings are wrong."


def test_a_text_that_is_too_long_for_a_study():
    with pytest.raises(
        InvalidInput, match="the text has 1000001 characters; a study file has at most 1000000"
    ):
        parse_study(1_000_001 * "#", "the text")


@pytest.mark.parametrize(
    ("answers", "elapsed_ms", "expected"),
    [
        (43, 50, True),
        (40, 40 * 566 - 1, True),
        (40, 40 * 566, False),
        (40, 3_600_000, False),
        (40, -1, False),
        (1, 0, True),
        (0, 0, False),
    ],
)
def test_answers_cannot_arrive_before_their_trials_were_shown(answers, elapsed_ms, expected):
    """Dots and image are shown for 300 ms each, or one frame less; a clock that was set back proves nothing."""
    timing = TimingSection()
    assert timing.is_too_fast(answers, 10_000_000, 10_000_000 + elapsed_ms) is expected
    assert not timing.is_too_fast(answers, 10_000_000, None)
    assert not TimingSection(cue_ms=0, image_ms=17).is_too_fast(answers, 0, 0), "shorter than a frame"


@pytest.mark.parametrize(
    ("labels", "design", "message"),
    [
        (
            "",
            "oracle",
            r'design.name = "oracle" needs the labels of image \'cat\', the segment of each location',
        ),
        (
            ", labels = [0, 1]",
            "oracle",
            "labels of image 'cat' should be 9 numbers from 0 to 2, one for each location, got 2 from 0 to 1",
        ),
        (", labels = [0, 0, 0, 0, 0, 0, 0, 0, 3]", "oracle", "should be 9 numbers .*, got 9 from 0 to 3"),
        (
            ", labels = [0, 0, 0, 1, 1, 1, 2, 2, 2]",
            "scattered",
            "labels of image 'cat' need design.name = \"oracle\", got 'scattered'",
        ),
        (
            ", labels = [-1]",
            "oracle",
            r"images\[0\].labels\[0\] should be a whole number from 0 to 11, got -1",
        ),
    ],
)
def test_labels_of_an_oracle_design(labels, design, message):
    with pytest.raises(InvalidInput, match=f"line 4: .*{message}"):
        parse_study(
            'name = "s"\nsegments = 3\nparticipants = 1\n'
            f'images = [{{name = "cat", colours = 3{labels}}}]\nlayout = {{grid = 3}}\n'
            f'design = {{name = "{design}"}}\n'
        )
