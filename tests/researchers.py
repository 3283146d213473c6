"""A researcher's script: `with scripted(url, *studies) as api: api.get("studies")`, by a personal token."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from servers import Served, event, response, served
from vseg import store


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
