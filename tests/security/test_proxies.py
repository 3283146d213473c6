"""Test the server behind real proxies: a stranger's requests must not become part of other people's."""

from collections.abc import Iterator

import httpx
import pytest

from proxies import PATIENCE_S, PROXIES, explain_missing, find_proxy, has_reached_server, run_proxy, smuggle
from servers import STUDY, ParticipantClient, RunningServer, response, run_server

ROUNDS = 20


@pytest.fixture(params=PROXIES)
def proxied(request, tmp_path) -> Iterator[tuple[RunningServer, tuple[str, int]]]:
    """Run a server behind a proxy; yield both, the proxy as its address."""
    if find_proxy(request.param) is None:
        pytest.skip(explain_missing(request.param))
    with (
        run_server(f"sqlite:///{tmp_path}/vseg.db", STUDY) as server,
        run_proxy(request.param, tmp_path, httpx.URL(server.base).port or 0) as address,
    ):
        yield server, address


@pytest.mark.parametrize("padding", [0, 10_000], ids=["short", "long"])
@pytest.mark.parametrize("path", ["/s/tiny/records", "/s/tiny/sessions"])
def test_answers_behind_a_proxy_are_stored_if_they_are_acknowledged(proxied, path, padding):
    """A stranger smuggles heads that would swallow the next request on the proxy's connection."""
    server, address = proxied
    smuggled = b"GET /pages/researcher.css HTTP/1.1\r\nHost: x\r\nContent-Length: 700\r\n\r\n"
    acknowledged = []
    with httpx.Client(
        base_url="http://{}:{}/".format(*address), timeout=PATIENCE_S, trust_env=False
    ) as client:
        began = client.post("s/tiny/sessions", json={"consented": True})
        assert began.status_code == 201, began.text
        person = ParticipantClient(client, "tiny", began.json())
        for number in range(ROUNDS):
            assert has_reached_server(smuggle(address, smuggled, padding=padding, path=path))
            reply = person.send(response(number, number))
            assert reply.status_code == 200, reply.text
            assert reply.json() == {"stored": [number]}, "the reply to this request, not to another"
            acknowledged.append(number)
    assert [row["seq"] for row in server.responses()] == acknowledged
