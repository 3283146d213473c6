"""The lines of the keys in a TOML file, and the errors of invalid TOML."""

import json
import tomllib

import pytest
from hypothesis import given, strategies as st

from vseg.study.toml_errors import MAX_DEPTH, find_key_lines, parse_toml

TEXT = """# a comment with [brackets] and key = value
title = "a # b = [c]"
"quoted key" = 'it''s' # end
""".replace("it''s", "its")

MANY = '''
plain = 1
dotted.inner = 2
[table]
string = """
[not_a_table]
not_a_key = 1
"quoted" \\""" still
"""
literal = \'\'\'
x = 1\'\'\'
list = [
  1, # one
  [2, 3],
  {a = 4, b = {c = 5}},
]
[[many]]
name = "first"
[[many]]
name = "second"
[many.inner]
deep = true
[[many.more]]
k = 1979-05-27
[after."a.b"]
c = """"""
'''


def test_text_in_strings_and_comments_is_not_a_key():
    assert find_key_lines(TEXT) == {("title",): 2, ("quoted key",): 3}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("plain",), 2),
        (("dotted", "inner"), 3),
        (("table",), 4),
        (("table", "string"), 5),
        (("table", "literal"), 10),
        (("table", "list", 0), 13),
        (("table", "list", 1, 1), 14),
        (("table", "list", 2, "b", "c"), 15),
        (("many", 0, "name"), 18),
        (("many", 1), 19),
        (("many", 1, "inner", "deep"), 22),
        (("many", 1, "more", 0, "k"), 24),
        (("after", "a.b", "c"), 26),
    ],
)
def test_lines(path, line):
    assert find_key_lines(MANY)[path] == line


def all_paths(value, path=()):
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield from all_paths(inner, (*path, step))


@pytest.mark.parametrize("text", [TEXT, MANY, MANY.replace("\n", "\r\n"), "", "\n\n", "a=1"])
def test_every_key_that_tomllib_reads_has_a_line(text):
    assert set(find_key_lines(text)) == set(all_paths(tomllib.loads(text))) - {()}


keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=5)
values = st.recursive(
    st.one_of(st.integers(-9, 9), st.booleans(), st.text("a\"'\\#[]{}=,\n .", max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)


def to_toml(value) -> str:
    """Return a value as TOML: strings as in JSON, tables inline."""
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(k)} = {to_toml(v)}" for k, v in value.items()) + "}"
        case list():
            return "[\n" + "".join(f"  {to_toml(v)}, # [x] = 1\n" for v in value) + "]"
        case _:
            return json.dumps(value)


@given(
    st.dictionaries(keys, values, max_size=4), st.lists(st.dictionaries(keys, values, max_size=2), max_size=3)
)
def test_any_valid_file(top, tables):
    text = "".join(f"{json.dumps(key)} = {to_toml(value)}\n" for key, value in top.items())
    for table in tables:
        text += "[['the tables']]\n" + "".join(f"{json.dumps(k)} = {to_toml(v)}\n" for k, v in table.items())
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # a repeated key, such as 'the tables'
    assert set(find_key_lines(text)) == set(all_paths(read)) - {()}
    first = text.split("\n")
    for path, line in find_key_lines(text).items():
        if len(path) == 1 and path[0] in top:
            assert first[line - 1].startswith(json.dumps(path[0]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb = \n", "f.toml, line 2: this is not valid TOML, invalid value at column 5."),
        (
            "a = 1\na = 2",
            "f.toml, line 2: this is not valid TOML, cannot overwrite a value at the end of the file.",
        ),
        ("[a", "f.toml, line 1: this is not valid TOML, expected ']' at the end of a table declaration"),
        (
            "\na = " + 5000 * "[",
            "f.toml, line 2: this is nested too deeply; expected at most 8 tables, lists",
        ),
        ("b = 1\na" + 12_000 * ".a" + " = 1", "f.toml, line 2: this is nested too deeply"),
        ("[a.a.a.a.a.a]\nb = 1\na.a.a.a = 1", "f.toml, line 3: this is nested too deeply"),
        ("[[a.a.a.a]]\na.a.a = [{a.a = 1}]", "f.toml, line 2: this is nested too deeply"),
        ("a = {a.a.a = {a.a.a = {a.a.a = 1}}}", "f.toml, line 1: this is nested too deeply"),
        ("".join(f"k{number} = 1\n" for number in range(100_000)), "f.toml has more than 30000 settings"),
        ("k = [" + 40_000 * "1," + "]", "f.toml has more than 30000 settings and entries of lists"),
        (40_000 * "[[k]]\n", "f.toml has more than 30000 settings and entries of lists"),
        ('"""' + 200_000 * '\\"""', "f.toml, line 1: this is not valid TOML"),
        ("a = " + 5000 * "9", "f.toml is not valid TOML: Exceeds the limit"),
    ],
)
def test_invalid_toml(text, message):
    with pytest.raises(ValueError) as error:
        parse_toml(text, "f.toml")
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        "a = '''" + 50_000 * "." + "'''  # " + 50_000 * "[,=" + "\nb = '" + 50_000 * "=" + "'",
        'a = """' + 50_000 * ", = . [" + '\\""" still\n""" # ' + 9 * "[",
        50_000 * "# a.b = [\n" + "a = 1",
        "a.b.c = [[1.5, 2.5], [3.5]]\n" + "".join(f"[t{n}.u.v.w]\nx = {{y = 1.5}}\n" for n in range(500)),
    ],
)
def test_text_in_strings_and_comments_counts_neither_as_depth_nor_as_values(text):
    assert parse_toml(text, "f.toml") == tomllib.loads(text)


@given(st.lists(keys, max_size=5), st.lists(keys, min_size=1, max_size=5), st.lists(keys, max_size=5))
def test_depth_does_not_depend_on_how_it_is_written(header, dotted, inline):
    header, dotted, inline = (
        [json.dumps(name, ensure_ascii=False) for name in names] for names in (header, dotted, inline)
    )
    text = f"[{'.'.join(header)}]\n" if header else ""
    text += ".".join(dotted) + "".join(f" = {{{name}" for name in inline) + " = 1" + "}" * len(inline)
    if len(header) + len(dotted) + len(inline) > MAX_DEPTH:
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_toml(text, "f.toml")
    else:
        assert parse_toml(text, "f.toml") == tomllib.loads(text)
