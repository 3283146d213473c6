"""The participant's side of the wire: requests that are sent again, and errors as the server words them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx

from vseg.errors import Conflict, InvalidInput, NotAllowed, NotFound, VsegError

ERRORS = {401: NotAllowed, 404: NotFound, 422: InvalidInput}
NAMES = {
    "PROLIFIC_PID": "prolific_pid",
    "STUDY_ID": "prolific_study",
    "SESSION_ID": "prolific_session",
    "link": "link",
}
"""Of who comes: in the address, and on the wire."""
OF_ONE = ("link", "PROLIFIC_PID")
TRIES = 9
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Wire:
    """A study's address, and the connections to it."""

    client: httpx.AsyncClient
    url: str

    @classmethod
    @asynccontextmanager
    async def to(cls, url: str, at_once: int) -> AsyncIterator["Wire"]:
        """Connections to the study at this address; they end with the context."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InvalidInput(
                f"Expected a participant's address such as http://localhost:8000/s/NAME/, got {url!r}."
            )
        base = urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/", "", ""))
        limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
        async with httpx.AsyncClient(
            limits=limits, timeout=httpx.Timeout(TIMEOUT_S, pool=None), follow_redirects=True
        ) as client:
            yield cls(client, base)

    async def study(self) -> dict[str, Any]:
        """study.json; an address that answers nothing is not asked for long."""
        try:
            answer = await self.ask("GET", "study.json", tries=3)
            return dict(answer.json())
        except (NotFound, ValueError, TypeError) as error:
            raise NotFound(
                f"There is no study at {self.url}; expected a participant's address such as "
                f"http://localhost:8000/s/NAME/{f' ({error})' if isinstance(error, NotFound) else ''}."
            ) from error

    async def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, tries: int = TRIES
    ) -> httpx.Response:
        """The server's answer; where there is none, or it is overloaded, again after a growing pause."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        pause, reason = FIRST_PAUSE_S, ""
        for number in range(tries):
            try:
                answer = await self.client.request(method, self.url + path, json=body, headers=headers)
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            except httpx.InvalidURL as error:
                raise InvalidInput(f"{self.url} is no address that can be asked ({error}).") from error
            else:
                if answer.status_code not in (429, 502, 503, 504):
                    return _checked(answer)
                reason = _message(answer)
            if number + 1 < tries:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
        raise VsegError(
            f"No answer from {self.url} after {tries} tries ({reason.rstrip('.')}); is vseg serve running?"
        )


def entry(url: str, count: int) -> dict[str, str]:
    """Who comes by this address, as its page would say: by Prolific's parameters or a personal link, one person.

    Examples
    --------
    >>> entry("http://localhost:8000/s/my-study/?link=abc", 1)
    {'link': 'abc'}
    """
    given = {name: value for name, value in parse_qsl(urlsplit(url).query) if name in NAMES}
    own = next((name for name in OF_ONE if name in given), None)
    if own and count > 1:
        raise InvalidInput(
            f"The address holds {own}=…, which is one person's, but {count} are to take part: let one do so "
            "(--count 1), or leave out what follows the question mark."
        )
    return {NAMES[name]: value for name, value in given.items()}


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_success:
        return answer
    if answer.status_code == 409:
        raise Refusal(_message(answer), _content(answer))
    raise ERRORS.get(answer.status_code, VsegError)(_message(answer))


class Refusal(Conflict):
    """A 409; `.content` is all that the server said."""

    def __init__(self, message: str, content: dict[str, Any]):
        super().__init__(message, str(content.get("reason", "conflict")))
        self.content = content


def _message(answer: httpx.Response) -> str:
    where = f"{answer.request.method} {answer.request.url.path}"
    return str(
        _content(answer).get("message") or f"The server answered {where} with status {answer.status_code}."
    )


def _content(answer: httpx.Response) -> dict[str, Any]:
    try:
        content = answer.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
