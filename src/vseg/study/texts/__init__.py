"""What a participant reads, in English, French and German: a TOML file a language, all with the same keys.

A text is plain: paragraphs have a blank line between them, and words in braces, such as {segments}, are filled
in by the page. A study file replaces any of them in its table [texts].
"""

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "fr", "de")
LONGEST = 20_000


def of(language: str) -> dict[str, str]:
    """Every text in that language, by its key.

    Examples
    --------
    >>> of("fr")["continue"]
    'Continuer'
    """
    return dict(_read(language))


def placeholders(text: str) -> set[str]:
    """The words in braces, which the page fills in.

    Examples
    --------
    >>> placeholders("{done} of {of}") == {"done", "of"}
    True
    """
    return set(re.findall(r"\{([^{}]*)\}", text))


def checked(overrides: Mapping[str, str]) -> None:
    """Raise a ValueError for a text that no screen shows, or for words in braces that no page fills in.

    Examples
    --------
    >>> checked({"consent": "Our own words."})
    """
    english = _read("en")
    for key, text in overrides.items():
        if key not in english:
            near = get_close_matches(key, english, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(english)}"
            raise ValueError(f"there is no text {key!r}; {hint}")
        if len(text) > LONGEST:
            raise ValueError(f"the text {key} has {len(text)} characters; at most {LONGEST} are allowed")
        if unknown := sorted(placeholders(text) - placeholders(english[key])):
            known = ", ".join(f"{{{word}}}" for word in sorted(placeholders(english[key])))
            hint = (
                f"this text knows {known}" if known else "nothing is filled in here; write it without braces"
            )
            raise ValueError(f"the text {key} has {{{unknown[0]}}}, which no page fills in; {hint}")


@cache
def _read(language: str) -> Mapping[str, str]:
    if language not in LANGUAGES:
        raise ValueError(f"there are texts in {', '.join(LANGUAGES)}, got {language!r}")
    text = files(__name__).joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return {key: value.strip() for key, value in tomllib.loads(text).items()}
