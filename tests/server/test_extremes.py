"""Every number of a study file at both its ends: what is accepted can be served, and harms no other study."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from researchers import log_in, run_server_with_api_client
from servers import STUDY
from vseg.errors import InvalidInput
from vseg.study.schema import Study, parsed

SCHEMA = Study.model_json_schema()
LEAST = {
    "segments": 2, "participants": 3, "layout": {"grid": 4}, "images": [{"name": "p", "colours": 2, "condition": "c"}],
}  # fmt: skip
ADAPTIVE = {"name": "adaptive", "target_error": 0.1}
BESIDE: dict[str, dict[str, Any]] = {
    "design.target_error": {"design": ADAPTIVE},
    "design.least_trials": {"design": ADAPTIVE},
    "layout.points": {"layout": {}},
    "images.colours": {"images": [{"name": "p"}]},
    "seed": {"design": ADAPTIVE},
}
"""What a setting needs beside it."""
OTHER_ENDS = {
    "design.trials": (8, 120), "design.least_trials": (1, 32), "design.split": (1, 32),
    "assignment.per_participant": (1, 1),
}  # fmt: skip
"""Where another setting limits it further."""
DECIDING = ("layout", "images", "design", "assignment")
MOST_BEGUN = 5000  # trials of a session that is begun here


def numbers(node: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every number in the schema, by its dotted path."""
    if "$ref" in node:
        node = SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]
    if node.get("type") in ("integer", "number"):
        yield ".".join(path), node
    for name, inner in node.get("properties", {}).items():
        yield from numbers(inner, (*path, name))
    more = [node.get("items"), node.get("additionalProperties")]
    for inner in (*node.get("anyOf", []), *node.get("prefixItems", [])[:1], *filter(None, more)):
        yield from numbers(inner, path)


NUMBERS = dict(numbers(SCHEMA))


def ends(path: str) -> tuple[float, float]:
    """The smallest and the largest number that is taken."""
    node = NUMBERS[path]
    if path in OTHER_ENDS:
        return OTHER_ENDS[path]
    low = node["minimum"] if "minimum" in node else inside(node, "exclusiveMinimum", 1)
    return low, node["maximum"] if "maximum" in node else inside(node, "exclusiveMaximum", -1)


def inside(node: dict[str, Any], end: str, way: int) -> float:
    """The next number that is not the end itself."""
    return node[end] + way if node["type"] == "integer" else math.nextafter(node[end], way * math.inf)


def with_value(path: str, number: float, study: dict[str, Any] = LEAST) -> dict[str, Any]:
    """A study, a small one unless said otherwise, with this number there."""
    study = {**study, **BESIDE.get(path, {})}
    table, _, key = path.partition(".")
    value: Any = {
        "layout.points": [[number, 0.5], [0.2, 0.1], [0.3, 0.9], [0.6, 0.4]],
        "display.window_px": [number, number],
        "assignment.quota_per_condition": {"c": number},
    }.get(path, number)
    if not key:
        return study | {table: value}
    if table == "images":
        return study | {"images": [{**study["images"][0], key: value}]}
    if key == "grid":
        return study | {"layout": {"grid": value}, "design": {"blocks": 1}}
    inner, _, last = key.partition(".")
    return study | {table: {**study.get(table, {}), inner: {last: value} if last else value}}


def at_the_ends() -> Iterator[dict[str, Any]]:
    """Studies with each number at each end: one by one where they decide what is asked, else all together."""
    for end in (0, 1):
        rest = LEAST
        for path in sorted(NUMBERS):
            if "." not in path or path.startswith(DECIDING):
                yield with_value(path, ends(path)[end])
            else:
                rest = with_value(path, ends(path)[end], rest)
        yield rest


def toml(value: Any) -> str:
    """A value as TOML writes it, in one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {toml(each)}' for key, each in value.items())}}}"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else repr(value).replace("'", '"')


def text_of(name: str, study: dict[str, Any]) -> str:
    return "\n".join(f"{key} = {toml(value)}" for key, value in {"name": name, **study}.items())


@pytest.mark.parametrize("path", sorted(NUMBERS))
def test_every_number_has_two_ends(path):
    """A number without an end was once more than the database could be asked about, and no page could be shown."""
    node = NUMBERS[path]
    assert {"minimum", "exclusiveMinimum"} & set(node)
    assert {"maximum", "exclusiveMaximum"} & set(node)
    for number in (2**63, 10**30):
        with pytest.raises(InvalidInput, match=r"should be|got"):
            parsed(text_of("s", with_value(path, number)))


def test_studies_at_the_ends_are_served(database_url):
    """Accepted, listed beside the others, described to a page, and begun where that is no long work."""
    with run_server_with_api_client(database_url, STUDY) as api:
        client, begun = api.server.client, 0
        studies = list(at_the_ends())
        for at, given in enumerate(studies):
            name, text = f"s{at}", text_of(f"s{at}", given)
            made = api.post("studies", json={"text": text})
            assert made.status_code == 201, f"{text}\n{made.text}"
            assert client.get(f"s/{name}/study.json").status_code == 200, text
            assert api.get(f"studies/{name}").status_code == 200, text
            study = parsed(text)
            if study.pairs * study.design.blocks <= MOST_BEGUN:
                person = client.post(f"s/{name}/sessions", json={"consented": True})
                assert person.status_code in (201, 409), f"{text}\n{person.text}"
                begun += person.status_code == 201
        assert begun > 0.8 * len(studies)
        assert len(api.get("studies").json()) == len(studies) + 1
        log_in(api.server)
        assert client.get("").status_code == 200
