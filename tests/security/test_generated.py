"""Requests that schemathesis makes up from the description of the API: whatever is asked, no server error.

The researcher's API describes itself; the participant's routes are described here, from the shapes they check by.
Half of the requests name studies, images and people that are there, so that they get past the door.
"""

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from pydantic import TypeAdapter
from schemathesis import GenerationMode

from chaos.security_counts import GENERATED, count_requests
from roles import AttackScenario, run_server_with_roles
from servers import response
from vseg import store
from vseg.server.headers import SECURITY_HEADERS
from vseg.server.participant_routes import COMPLETION, ENTRY, LEAVING
from vseg.server.record_validation import POSTED_RECORDS

FEW, MANY = 100, 12_000
ROLES = (
    "researcher's script", "researcher's script", "researcher's script", "researcher", "nobody", "random token",
    "another participant", "finished participant", "another study's participant",
)  # fmt: skip
PARTICIPANTS = (
    "another participant", "another participant", "finished participant", "nobody", "another study's participant",
)  # fmt: skip
SENDS_PEOPLE = (
    "/studies/{name}/simulate"  # to real studies it sends processes, not requests: test_simulation does
)


def described_for_participants() -> dict[str, Any]:
    """The participant's routes as OpenAPI has it."""
    schemas: dict[str, Any] = {}

    def taking(shape: TypeAdapter[Any]) -> dict[str, Any]:
        schema = shape.json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}

    answers = {"responses": {"200": {"description": "fine"}}}
    where = [{"name": "study", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}]
    digest = [*where, {**where[0], "name": "sha256"}]
    paths: dict[str, Any] = {
        f"/s/{{study}}/{what}": {"post": {"parameters": where, **taking(shape), **answers}}
        for what, shape in (
            ("records", POSTED_RECORDS),
            ("sessions", ENTRY),
            ("complete", COMPLETION),
            ("leave", LEAVING),
        )
    }
    paths |= {
        f"/s/{{study}}{what}": {"get": {"parameters": where, **answers}}
        for what in ("", "/", "/study.json", "/session")
    }
    paths["/s/{study}/images/{sha256}.png"] = {"get": {"parameters": digest, **answers}}
    about = {"openapi": "3.1.0", "info": {"title": "participants", "version": "1"}, "paths": paths}
    return {**about, "components": {"schemas": schemas}}


class Fuzz:
    """One server, everyone who asks, and what came back."""

    def __init__(self, world: AttackScenario):
        self.world, self.session = world, requests.Session()
        self.session.trust_env = False
        self.statuses: Counter[int] = Counter()
        self.asked: Counter[str] = Counter()
        store.researchers.set_password(world.server.db, "Zoe", "never used")
        self.real = {
            "study": "tiny", "name": "tiny", "image": "patches", "sha256": world.image, "k": 0,
            "participant": world.victim.state["participant"],
        }  # fmt: skip

    def cases(self) -> st.SearchStrategy[Any]:
        """A case of any operation, that fits its description or does not, with names that are there or not."""
        script = self.world.roles["researcher's script"]
        described = self.world.ask(script, "GET", "api/openapi.json").json()
        ways = []
        for api in (described, described_for_participants()):
            schema = schemathesis.openapi.from_dict(copy.deepcopy(api))
            for found in schema.get_all_operations():
                operation = found.ok()
                named = {each["name"] for each in self._parameters(operation) if each["in"] == "path"}
                real = {name: self.real[name] for name in named if name in self.real}
                for mode in GenerationMode:
                    ways.append(operation.as_strategy(generation_mode=mode))
                    if operation.path != SENDS_PEOPLE and not (
                        operation.method == "delete" and "participant" in named
                    ):
                        ways.append(operation.as_strategy(generation_mode=mode, path_parameters=real))
        return st.sampled_from(ways).flatmap(lambda way: way)

    @staticmethod
    def _parameters(operation: Any) -> list[dict[str, Any]]:
        return [each for each in operation.definition.raw.get("parameters", []) if "name" in each]

    def ask(self, case: Any, role: str) -> None:
        """Send it, and look at what comes back."""
        is_api = not case.path.startswith("/s/")
        base = self.world.server.base.rstrip("/") + ("/api" if is_api else "")
        if case.path.endswith("/records"):
            _made_fitting(case.body)
        self.session.cookies.clear()
        options = case.as_transport_kwargs(base_url=base)
        headers = {**options.pop("headers"), **self._headers(case, role)}
        if role != "nobody":
            options.pop("cookies", None)
        answer = self.session.request(**options, headers=headers, allow_redirects=False, timeout=60)
        self.statuses[answer.status_code] += 1
        self.asked[role] += 1
        said = f"{options} by {role}: {answer.status_code} {answer.text[:500]}"
        assert answer.status_code < 500, said
        assert "Traceback" not in answer.text, said
        assert answer.headers["Content-Security-Policy"] == SECURITY_HEADERS["Content-Security-Policy"], said
        if is_api and "researcher" not in role:
            assert answer.status_code in (401, 404, 405), said
        if answer.status_code >= 400 and (is_api or options["method"] == "POST"):
            assert set(answer.json()) >= {"error", "message"}, said

    def _headers(self, case: Any, role: str) -> dict[str, str]:
        # Nobody revokes what the others come in by.
        if case.path.startswith("/tokens/") and "researcher" in role:
            return {"Authorization": f"Bearer {self._throwaway()}"}
        who = self.world.roles[role]
        return {**who.headers, **({"X-CSRF-Token": who.form_token} if who.form_token else {})}

    def _throwaway(self) -> str:
        db = self.world.server.db
        for row in store.tokens.list_tokens(db, "Zoe"):
            store.tokens.revoke(db, "Zoe", row.id)
        return store.tokens.create(db, "Zoe", "thrown away")


def _made_fitting(body: Any) -> None:
    """Numbers of records and items as a session has them, where the description alone would hardly ever hit one."""
    if not isinstance(body, dict) or not isinstance(body.get("records"), list):
        return
    for record in body["records"]:
        for name, most in (("seq", 1112), ("item", 28)):
            if isinstance(record, dict) and type(record.get(name)) is int and abs(record[name]) <= 1_000_000:
                record[name] %= most


@pytest.fixture
def fuzz(database_url) -> Iterator[Fuzz]:
    with run_server_with_roles(database_url) as world:
        yield Fuzz(world)


def run(fuzz: Fuzz, examples: int) -> None:
    """So many requests, then everything a researcher looks at, over whatever was stored."""
    suppressed = list(HealthCheck)

    @settings(max_examples=examples, phases=[Phase.generate], suppress_health_check=suppressed, database=None)
    @given(case=fuzz.cases(), role=st.sampled_from(ROLES), participant=st.sampled_from(PARTICIPANTS))
    def asked(case: Any, role: str, participant: str) -> None:
        fuzz.ask(case, participant if case.path.startswith("/s/") else role)

    asked()
    still_there(fuzz)


def still_there(fuzz: Fuzz) -> None:
    """Pages, numbers and the export of a study whose participants have sent whatever they liked."""
    world = fuzz.world
    ann = world.roles["researcher"]
    headers = {"X-CSRF-Token": ann.form_token}  # some request may have closed it
    assert world.ask(ann, "POST", "api/studies/tiny/reopen", headers=headers).status_code == 200
    person = world.server.begin()
    assert person.send(response(0, 0)).status_code == 200
    sessions = world.ask(world.roles["researcher's script"], "GET", "api/studies/tiny/sessions").json()
    paths = [
        "",
        "studies/tiny",
        "studies/tiny/images/patches",
        "api/studies/tiny/progress",
        "api/studies/tiny/export.zip",
    ]
    paths += ["api/studies/tiny/images/patches/contours.json", "studies/tiny/data", "settings"]
    for path in paths:
        answer = world.ask(world.roles["researcher"], "GET", path)
        assert answer.status_code == 200, f"{path}: {answer.text[:500]}"
    for name in [row["participant"] for row in sessions][:20]:
        for path in (f"studies/tiny/participants/{name}", f"api/studies/tiny/participants/{name}"):
            answer = world.ask(world.roles["researcher"], "GET", path)
            assert answer.status_code in (200, 404), f"{path}: {answer.text[:500]}"


def test_requests_from_the_description(fuzz):
    run(fuzz, FEW)
    assert len(fuzz.statuses) >= 5, "some got through, and others were refused for different reasons"


@pytest.mark.chaos
def test_many_requests_from_the_description(fuzz, request):
    """On both databases together more than 20,000, by researchers, participants and nobody."""
    with count_requests(GENERATED, request.node.name) as counts:
        try:
            run(fuzz, MANY)
        finally:
            counts["requests"] = fuzz.statuses.total()
            counts["server errors"] = sum(n for status, n in fuzz.statuses.items() if status >= 500)
    print(f"{sum(fuzz.asked.values())} requests: {dict(fuzz.statuses)}, by {dict(fuzz.asked)}")
    assert sum(fuzz.asked.values()) >= MANY * 0.9
