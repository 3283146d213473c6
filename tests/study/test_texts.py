"""Three languages, one set of keys; a study's own texts are checked before anyone reads them."""

import pytest

from vseg.study import texts

ENGLISH = texts.load_texts("en")


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_every_language_has_the_same_keys_in_the_same_order(language):
    assert list(texts.load_texts(language)) == list(ENGLISH)


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_every_language_fills_in_the_same_words(language):
    """A word in braces that a page does not know would be shown as it is."""
    assert {key: texts.find_placeholders(text) for key, text in texts.load_texts(language).items()} == {
        key: texts.find_placeholders(text) for key, text in ENGLISH.items()
    }


@pytest.mark.parametrize("language", ["fr", "de"])
def test_nothing_is_left_untranslated(language):
    alike = {key for key, text in texts.load_texts(language).items() if text == ENGLISH[key]}
    assert alike <= {"key_enter", "gamma_title"}


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_every_text_says_something_and_nothing_is_left_to_trim(language):
    for text in texts.load_texts(language).values():
        assert text
        assert text == text.strip()
        assert text.count("{") == text.count("}") == len(texts.find_placeholders(text))


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_the_instructions_say_what_a_segment_is_and_spare_people_the_word_partition(language):
    for key in ("instructions_segments", "instructions_free"):
        assert "egment" in texts.load_texts(language)[key]
    for text in texts.load_texts(language).values():
        assert "partition" not in text.lower()


def test_a_language_that_is_not_there():
    with pytest.raises(ValueError, match="there are texts in en, fr, de, got 'it'"):
        texts.load_texts("it")


def test_what_is_handed_out_can_be_changed_without_harm():
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
def test_texts_that_are_refused(overrides, message):
    with pytest.raises(ValueError) as refused:
        texts.check_texts(overrides)
    assert str(refused.value) == message


def test_an_unknown_text_far_from_any_lists_all():
    with pytest.raises(ValueError, match="there are: title, continue, back"):
        texts.check_texts({"zzz": ""})


def test_every_text_may_be_replaced_and_may_leave_words_out():
    texts.check_texts(dict.fromkeys(ENGLISH, "Our own words."))
    texts.check_texts(ENGLISH)
