"""HTTP requests of one participant: repeated when there is no answer, with errors as the server words them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx

from vseg.errors import Conflict, InvalidInput, NotAllowed, NotFound, VsegError

ERRORS = {401: NotAllowed, 404: NotFound, 422: InvalidInput}
ENTRY_NAMES = {
    "PROLIFIC_PID": "prolific_pid",
    "STUDY_ID": "prolific_study",
    "SESSION_ID": "prolific_session",
    "link": "link",
}
"""Parameters that identify a participant: their names in the address, and in the request that begins a session."""
PERSONAL_PARAMETERS = ("link", "PROLIFIC_PID")
TRIES = 9
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
TIMEOUT_S = 30.0


class Refusal(Conflict):
    """The server answered with status 409; `.content` is its JSON."""

    def __init__(self, message: str, content: dict[str, Any]):
        super().__init__(message, str(content.get("reason", "conflict")))
        self.content = content


@dataclass(frozen=True)
class StudyClient:
    """The address of a study, and the connections to it."""

    client: httpx.AsyncClient
    url: str

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, at_once: int) -> AsyncIterator["StudyClient"]:
        """Open up to `at_once` connections to the study at this address; they end with the context."""
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

    async def fetch_study(self) -> dict[str, Any]:
        """Return study.json; a silent address is given up after a few tries."""
        try:
            response = await self.request("GET", "study.json", tries=3)
            return dict(response.json())
        except (NotFound, ValueError, TypeError) as error:
            raise NotFound(
                f"There is no study at {self.url}; expected a participant's address such as "
                f"http://localhost:8000/s/NAME/{f' ({error})' if isinstance(error, NotFound) else ''}."
            ) from error

    async def request(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, tries: int = TRIES
    ) -> httpx.Response:
        """Return the server's response; without one, or if it is overloaded, try again after a growing pause."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        pause, reason = FIRST_PAUSE_S, ""
        for number in range(tries):
            try:
                response = await self.client.request(method, self.url + path, json=body, headers=headers)
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            except httpx.InvalidURL as error:
                raise InvalidInput(f"{self.url} is not a valid address ({error}).") from error
            else:
                if response.status_code not in (429, 502, 503, 504):
                    return _check_response(response)
                reason = _message(response)
            if number + 1 < tries:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
        raise VsegError(
            f"No answer from {self.url} after {tries} tries ({reason.rstrip('.')}); is vseg serve running?"
        )


def parse_entry(url: str, count: int) -> dict[str, str]:
    """Return what the address says of the participant: a personal link or Prolific's parameters.

    Examples
    --------
    >>> parse_entry("http://localhost:8000/s/my-study/?link=abc", 1)
    {'link': 'abc'}
    """
    parameters = {name: value for name, value in parse_qsl(urlsplit(url).query) if name in ENTRY_NAMES}
    personal = next((name for name in PERSONAL_PARAMETERS if name in parameters), None)
    if personal and count > 1:
        raise InvalidInput(
            f"The address holds {personal}=…, which belongs to one participant, but {count} are to take part; "
            "let only one take part, or remove what follows the question mark."
        )
    return {ENTRY_NAMES[name]: value for name, value in parameters.items()}


def _check_response(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    if response.status_code == 409:
        raise Refusal(_message(response), _content(response))
    raise ERRORS.get(response.status_code, VsegError)(_message(response))


def _message(response: httpx.Response) -> str:
    request = f"{response.request.method} {response.request.url.path}"
    return str(
        _content(response).get("message")
        or f"The server answered {request} with status {response.status_code}."
    )


def _content(response: httpx.Response) -> dict[str, Any]:
    try:
        content = response.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
