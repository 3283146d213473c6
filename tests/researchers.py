"""Researchers: `log_in(server)` in a browser, or `run_server_with_api_client(url)` for scripts with a token."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import argon2
import httpx

from servers import RunningServer, event, response, run_server
from vseg import store

NAME, PASSWORD = "Ann Lee", "correct horse battery"
CHEAP_HASHER = argon2.PasswordHasher(
    time_cost=1, memory_cost=8, parallelism=1
)  # its settings travel in the hash
BROWSER_HEADERS = {"Accept": "text/html,application/xhtml+xml"}


def form_token(page: str) -> str:
    """Return the form token of a page."""
    found = re.search(r'name="form[_-]token" (?:value|content)="([0-9a-f]{64})"', page)
    assert found, page
    return found[1]


def post_form(client: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form with its token."""
    token = form_token(client.get("login").text)
    return client.post(path, data={"form_token": token, **fields}, headers=BROWSER_HEADERS)


def log_in(server: RunningServer) -> None:
    """Log a researcher in with a password, in the HTTP client of this server."""
    store.researchers.set_password(server.db, NAME, CHEAP_HASHER.hash(PASSWORD))
    answer = post_form(server.client, "login", name=NAME, password=PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@dataclass
class ApiClient:
    """A client of the researchers' API with a personal token, and its server."""

    server: RunningServer
    client: httpx.Client

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(f"api/{path}", **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.client.post(f"api/{path}", **options)

    def delete(self, path: str) -> httpx.Response:
        return self.client.delete(f"api/{path}")

    def take_part(self, study: str = "tiny", *, complete: bool = True, **entry: Any) -> Any:
        """Begin a session, answer every item, and complete it; return the participant."""
        person = self.server.begin(study, **entry)
        assert person.send(event(0, "consent", agreed=True)).status_code == 200
        for start in range(0, person.items, 100):
            items = range(start, min(start + 100, person.items))
            assert person.send(*(response(item + 1, item) for item in items)).status_code == 200
        if complete:
            assert person.post("complete", {"count": person.items + 1}).status_code == 200
        return person


@contextmanager
def run_server_with_api_client(url: str, *texts: str) -> Iterator[ApiClient]:
    """Run a server with these studies and a client of its API."""
    with run_server(url, *texts) as server:
        store.researchers.set_password(server.db, "Ann", "no password at all")
        headers = {"Authorization": f"Bearer {store.tokens.create(server.db, 'Ann', 'tests')}"}
        with httpx.Client(base_url=server.base, headers=headers, timeout=60, trust_env=False) as client:
            yield ApiClient(server, client)
