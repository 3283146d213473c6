"""A researcher: who logs in with a browser, `log_in(server)`, or a script with a personal token, `scripted(url)`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import argon2
import httpx

from servers import Served, event, response, served
from vseg import store

NAME, PASSWORD = "Ann Lee", "correct horse battery"
CHEAP = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)  # its settings travel in the hash
PEOPLE = {"Accept": "text/html,application/xhtml+xml"}


def form_token(page: str) -> str:
    """What the forms of a page bring along."""
    found = re.search(r'name="form[_-]token" (?:value|content)="([0-9a-f]{64})"', page)
    assert found, page
    return found[1]


def post(client: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form."""
    token = form_token(client.get("login").text)
    return client.post(path, data={"form_token": token, **fields}, headers=PEOPLE)


def log_in(server: Served) -> None:
    """Ann, with her password, in the browser that speaks to this server."""
    store.researchers.set_password(server.db, NAME, CHEAP.hash(PASSWORD))
    answer = post(server.client, "login", name=NAME, password=PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@dataclass
class Script:
    """A client of the API with a token, and the server it speaks to."""

    server: Served
    client: httpx.Client

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(f"api/{path}", **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.client.post(f"api/{path}", **options)

    def delete(self, path: str) -> httpx.Response:
        return self.client.delete(f"api/{path}")

    def take_part(self, study: str = "tiny", *, complete: bool = True, **entry: Any) -> Any:
        """Someone who agrees, answers all there is to answer, and completes."""
        person = self.server.begin(study, **entry)
        assert person.send(event(0, "consent", agreed=True)).status_code == 200
        for start in range(0, person.items, 100):
            items = range(start, min(start + 100, person.items))
            assert person.send(*(response(item + 1, item) for item in items)).status_code == 200
        if complete:
            assert person.post("complete", {"count": person.items + 1}).status_code == 200
        return person


@contextmanager
def scripted(url: str, *texts: str) -> Iterator[Script]:
    """The server over these studies, and a researcher's script."""
    with served(url, *texts) as server:
        store.researchers.set_password(server.db, "Ann", "no password at all")
        headers = {"Authorization": f"Bearer {store.tokens.create(server.db, 'Ann', 'tests')}"}
        with httpx.Client(base_url=server.base, headers=headers, timeout=60, trust_env=False) as client:
            yield Script(server, client)
