"""The texts in three languages have the same keys, and a study's own texts are checked."""

import pytest

from vseg.study import texts

ENGLISH = texts.load_texts("en")


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_every_language_has_the_same_keys_in_the_same_order(language):
    assert list(texts.load_texts(language)) == list(ENGLISH)


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_every_language_has_the_same_placeholders(language):
    """The page would show an unknown placeholder as it is."""
    assert {key: texts.find_placeholders(text) for key, text in texts.load_texts(language).items()} == {
        key: texts.find_placeholders(text) for key, text in ENGLISH.items()
    }


@pytest.mark.parametrize("language", ["fr", "de"])
def test_every_text_is_translated(language):
    equal = {key for key, text in texts.load_texts(language).items() if text == ENGLISH[key]}
    assert equal <= {"key_enter", "gamma_title"}


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_texts_are_not_empty_and_have_no_outer_spaces(language):
    for text in texts.load_texts(language).values():
        assert text
        assert text == text.strip()
        assert text.count("{") == text.count("}") == len(texts.find_placeholders(text))


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_the_instructions_say_segment_and_never_partition(language):
    for key in ("instructions_segments", "instructions_free"):
        assert "egment" in texts.load_texts(language)[key]
    for text in texts.load_texts(language).values():
        assert "partition" not in text.lower()


def test_an_unknown_language():
    with pytest.raises(ValueError, match="there are texts in en, fr, de, got 'it'"):
        texts.load_texts("it")


def test_changing_the_returned_texts_does_not_change_the_originals():
    texts.load_texts("en")["continue"] = "changed"
    assert texts.load_texts("en") == ENGLISH


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"consnt": "…"}, "there is no text 'consnt'; did you mean consent?"),
        (
            {"break": "{done} %"},
            "the text break has {done}, which the page does not fill in; this text can have {percent}",
        ),
        (
            {"consent": "Dear {name}"},
            "the text consent has {name}, which the page does not fill in; nothing is filled in here; "
            "write it without braces",
        ),
        ({"consent": 20_001 * "a"}, "the text consent has 20001 characters; at most 20000 are allowed"),
    ],
)
def test_invalid_texts(overrides, message):
    with pytest.raises(ValueError) as error:
        texts.check_texts(overrides)
    assert str(error.value) == message


def test_an_unknown_key_without_a_similar_one_lists_all():
    with pytest.raises(ValueError, match="there are: title, continue, back"):
        texts.check_texts({"zzz": ""})


def test_every_text_may_be_replaced_without_its_placeholders():
    texts.check_texts(dict.fromkeys(ENGLISH, "Our own words."))
    texts.check_texts(ENGLISH)
