"""Every number of a study file at both limits: accepted studies can be served and do not affect other studies."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from researchers import log_in, run_server_with_api_client
from servers import STUDY
from vseg.errors import InvalidInput
from vseg.study.schema import Study, parse_study

SCHEMA = Study.model_json_schema()
SMALLEST_STUDY = {
    "segments": 2, "participants": 3, "layout": {"grid": 4}, "images": [{"name": "p", "colours": 2, "condition": "c"}],
}  # fmt: skip
ADAPTIVE = {"name": "adaptive", "target_error": 0.1}
REQUIRED_SETTINGS: dict[str, dict[str, Any]] = {
    "design.target_error": {"design": ADAPTIVE},
    "design.least_trials": {"design": ADAPTIVE},
    "layout.points": {"layout": {}},
    "images.colours": {"images": [{"name": "p"}]},
    "images.labels": {"design": {"name": "oracle"}},
    "seed": {"design": ADAPTIVE},
}
"""Other settings that a setting needs."""
OTHER_LIMITS = {
    "design.trials": (8, 120), "design.least_trials": (1, 32), "design.split": (1, 32),
    "assignment.per_participant": (1, 1), "images.labels": (0, 1),
}  # fmt: skip
"""Limits that depend on another setting."""
TESTED_ALONE = ("layout", "images", "design", "assignment")
MAX_TRIALS = 5000  # of sessions that are begun here


def list_numbers(node: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every number of the schema with its dotted path."""
    if "$ref" in node:
        node = SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]
    if node.get("type") in ("integer", "number"):
        yield ".".join(path), node
    for name, inner in node.get("properties", {}).items():
        yield from list_numbers(inner, (*path, name))
    more = [node.get("items"), node.get("additionalProperties")]
    for inner in (*node.get("anyOf", []), *node.get("prefixItems", [])[:1], *filter(None, more)):
        yield from list_numbers(inner, path)


NUMBERS = dict(list_numbers(SCHEMA))


def get_limits(path: str) -> tuple[float, float]:
    """Return the smallest and the largest number that is accepted."""
    node = NUMBERS[path]
    if path in OTHER_LIMITS:
        return OTHER_LIMITS[path]
    low = node["minimum"] if "minimum" in node else next_inside(node, "exclusiveMinimum", 1)
    return low, node["maximum"] if "maximum" in node else next_inside(node, "exclusiveMaximum", -1)


def next_inside(node: dict[str, Any], limit: str, direction: int) -> float:
    """Return the number next to an exclusive limit."""
    return (
        node[limit] + direction
        if node["type"] == "integer"
        else math.nextafter(node[limit], direction * math.inf)
    )


def with_value(path: str, number: float, study: dict[str, Any] = SMALLEST_STUDY) -> dict[str, Any]:
    """Return a study with this number at this path."""
    study = {**study, **REQUIRED_SETTINGS.get(path, {})}
    table, _, key = path.partition(".")
    value: Any = {
        "layout.points": [[number, 0.5], [0.2, 0.1], [0.3, 0.9], [0.6, 0.4]],
        "display.window_px": [number, number],
        "images.labels": [number, *[0, 1] * 7, 0],
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


def list_extreme_studies() -> Iterator[dict[str, Any]]:
    """Yield studies with each number at each limit: one by one if it changes the trials, else all together."""
    for limit in (0, 1):
        rest = SMALLEST_STUDY
        for path in sorted(NUMBERS):
            if "." not in path or path.startswith(TESTED_ALONE):
                yield with_value(path, get_limits(path)[limit])
            else:
                rest = with_value(path, get_limits(path)[limit], rest)
        yield rest


def to_toml(value: Any) -> str:
    """Return a value as TOML in one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {to_toml(each)}' for key, each in value.items())}}}"
    return f"[{', '.join(map(to_toml, value))}]" if isinstance(value, list) else repr(value).replace("'", '"')


def make_study_text(name: str, study: dict[str, Any]) -> str:
    return "\n".join(f"{key} = {to_toml(value)}" for key, value in {"name": name, **study}.items())


@pytest.mark.parametrize("path", sorted(NUMBERS))
def test_every_number_has_two_limits(path):
    """A number without a limit once overflowed the database, so that no page could be shown."""
    node = NUMBERS[path]
    assert {"minimum", "exclusiveMinimum"} & set(node)
    assert {"maximum", "exclusiveMaximum"} & set(node)
    for number in (2**63, 10**30):
        with pytest.raises(InvalidInput, match=r"should be|got"):
            parse_study(make_study_text("s", with_value(path, number)))


def test_extreme_studies_are_served(database_url):
    """They are accepted, listed with the others, described to a page, and begun unless that takes long."""
    with run_server_with_api_client(database_url, STUDY) as api:
        client, begun = api.server.client, 0
        studies = list(list_extreme_studies())
        for index, settings in enumerate(studies):
            name, text = f"s{index}", make_study_text(f"s{index}", settings)
            created = api.post("studies", json={"text": text})
            assert created.status_code == 201, f"{text}\n{created.text}"
            assert client.get(f"s/{name}/study.json").status_code == 200, text
            assert api.get(f"studies/{name}").status_code == 200, text
            study = parse_study(text)
            if study.pairs_per_block * study.design.blocks <= MAX_TRIALS:
                entered = client.post(f"s/{name}/sessions", json={"consented": True})
                assert entered.status_code in (201, 409), f"{text}\n{entered.text}"
                begun += entered.status_code == 201
        assert begun > 0.8 * len(studies)
        assert len(api.get("studies").json()) == len(studies) + 1
        log_in(api.server)
        assert client.get("").status_code == 200
