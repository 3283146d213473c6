"""The texts that participants read, in English, French and German: one TOML file per language, with the same keys.

A text is plain: a blank line separates paragraphs, and the page fills in words in braces, such as {segments}. A study
file replaces any of the texts in its table [texts].
"""

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "fr", "de")
LONGEST = 20_000  # characters


def load_texts(language: str) -> dict[str, str]:
    """Return all texts in a language, by key.

    Examples
    --------
    >>> load_texts("fr")["continue"]
    'Continuer'
    """
    return dict(_read(language))


def find_placeholders(text: str) -> set[str]:
    """Return the words in braces, which the page fills in.

    Examples
    --------
    >>> find_placeholders("{done} of {of}") == {"done", "of"}
    True
    """
    return set(re.findall(r"\{([^{}]*)\}", text))


def check_texts(overrides: Mapping[str, str]) -> None:
    """Raise a ValueError if a text has an unknown key, is too long, or has words in braces that are not filled in.

    Examples
    --------
    >>> check_texts({"consent": "Our own words."})
    """
    english = _read("en")
    for key, text in overrides.items():
        if key not in english:
            close = get_close_matches(key, english, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(english)}"
            raise ValueError(f"there is no text {key!r}; {hint}")
        if len(text) > LONGEST:
            raise ValueError(f"the text {key} has {len(text)} characters; at most {LONGEST} are allowed")
        if unknown := sorted(find_placeholders(text) - find_placeholders(english[key])):
            allowed = ", ".join(f"{{{word}}}" for word in sorted(find_placeholders(english[key])))
            hint = (
                f"this text can have {allowed}"
                if allowed
                else "nothing is filled in here; write it without braces"
            )
            raise ValueError(f"the text {key} has {{{unknown[0]}}}, which the page does not fill in; {hint}")


@cache
def _read(language: str) -> Mapping[str, str]:
    if language not in LANGUAGES:
        raise ValueError(f"there are texts in {', '.join(LANGUAGES)}, got {language!r}")
    text = files(__name__).joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return {key: value.strip() for key, value in tomllib.loads(text).items()}
