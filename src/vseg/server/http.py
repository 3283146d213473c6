"""What all routes share: a JSON body under a cap, and one shape for everything that goes wrong."""

import logging
import re
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from itertools import pairwise
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from vseg.errors import Conflict, InvalidInput, NotAllowed, NotFound, VsegError

SMALL_BODY = 8_192
LONGEST_QUOTE = 60
IN_TROUBLE = "The server cannot get at its data right now; try again in a moment."

STATUS: dict[type[Exception], int] = {
    InvalidInput: 422,
    NotFound: 404,
    Conflict: 409,
    NotAllowed: 401,
    VsegError: 503,
}

DATABASE_THREADS = 40
_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("vseg-database-threads")  # one for each event loop

T = TypeVar("T")
log = logging.getLogger("vseg.server")


async def in_thread(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """What a function that waits for the database returns, while the server goes on with others.

    In threads of their own: where the database does not answer, files of ours still leave, and `/health` tells.
    """
    try:
        limiter = _LIMITER.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(DATABASE_THREADS)
        _LIMITER.set(limiter)
    return await anyio.to_thread.run_sync(lambda: function(*arguments, **named), limiter=limiter)


async def body(request: Request, most: int = SMALL_BODY) -> bytes:
    """The body of a request, refused as soon as it is larger than `most` bytes."""
    _check_size(request.headers.get("content-length", "0"), most)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            _check_size(size, most)
            parts.append(part)
    except ClientDisconnect:
        raise HTTPException(400, "The connection ended before the body did; send it again.") from None
    return b"".join(parts)


async def json_body(request: Request, shape: TypeAdapter[T], most: int = SMALL_BODY) -> T:
    """A JSON body of this shape."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"Expected a body of type application/json, got {kind or 'none'!r:.60}.")
    content = await body(request, most)
    try:
        return shape.validate_json(content)
    except ValidationError as error:
        raise InvalidInput(sentence(error.errors(include_url=False))) from None


def sentence(errors: Any) -> str:
    """The first thing wrong with a body: 'records[3].rt_ms should be a valid number, got "fast".'."""
    first = errors[0]
    # What follows a number is the kind of record, which is no step of the body's own path.
    steps = [step for before, step in pairwise(["", *first["loc"]]) if not isinstance(before, int)]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    said = re.sub(r"^(Value error,|Input|List|String) ", "", first["msg"]).rstrip(".")
    if first["type"] in ("json_invalid", "missing", "extra_forbidden"):
        return f"{path or 'The body'}: {said}."
    got = repr(first["input"])
    got = got if len(got) <= LONGEST_QUOTE else f"{got[:LONGEST_QUOTE]}…"
    return f"{path or 'The body'} {said}, got {got}."


def error(status: int, name: str, message: str, **extras: Any) -> JSONResponse:
    """The one shape of an error."""
    return JSONResponse({"error": name, "message": message, **extras}, status)


async def of_vseg(request: Request, exception: Exception) -> Response:
    """An error of ours, with the status of its kind."""
    status = status_of(exception)
    extras = {"reason": exception.reason} if isinstance(exception, Conflict) else {}
    answer = error(status, type(exception).__name__, said_of(exception), **extras)
    if status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        log.error("%s: %s", type(exception).__name__, exception)
        answer.headers["Retry-After"] = "5"
    return answer


def said_of(exception: Exception) -> str:
    """What whoever asked is told of an error of ours: where the database lies and why it fails is for the log alone."""
    return IN_TROUBLE if type(exception) is VsegError else str(exception)


def status_of(exception: Exception) -> int:
    """The HTTP status of an error of ours."""
    return next(STATUS[kind] for kind in type(exception).__mro__ if kind in STATUS)


async def of_http(request: Request, exception: Exception) -> Response:
    """An error of HTTP itself: no such address, wrong method, body too large."""
    assert isinstance(exception, HTTPException)
    phrase = HTTPStatus(exception.status_code).phrase
    message = exception.detail
    if message == phrase:
        message = f"{phrase}: {request.method} {request.url.path!r:.200} is nothing this server knows."
    answer = error(exception.status_code, phrase.replace(" ", "").replace("-", ""), message)
    answer.headers.update(exception.headers or {})
    return answer


async def of_bug(request: Request, exception: Exception) -> Response:
    """What nobody foresaw; the log has the traceback."""
    return error(
        500, "InternalServerError", "Something went wrong on the server; it has been logged. Try again."
    )


Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]
HANDLERS: dict[int | type[Exception], Handler] = {
    VsegError: of_vseg,
    HTTPException: of_http,
    Exception: of_bug,
}


def _check_size(size: int | str, most: int) -> None:
    if (int(size) if str(size).isdecimal() else 0) > most:
        raise HTTPException(413, f"The body has more than the {most} bytes allowed here; send less at once.")
