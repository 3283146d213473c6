"""Reading requests and answering errors: JSON bodies of limited size, and one JSON shape for all errors."""

import logging
import re
import threading
from collections.abc import Callable, Coroutine, Sequence
from http import HTTPStatus
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from vseg.errors import Conflict, InvalidInput, NotAllowed, NotFound, VsegError

MAX_SMALL_BODY_BYTES = 8_192
MAX_QUOTE_LENGTH = 60
MAX_SIZE_DIGITS = 18
STOPPING = "The server is being stopped; try again when it runs again."
DATABASE_UNAVAILABLE = "The server cannot reach its database right now; try again in a moment."

STATUS_CODES: dict[type[Exception], int] = {
    InvalidInput: 422,
    NotFound: 404,
    Conflict: 409,
    NotAllowed: 401,
    VsegError: 503,
}

DATABASE_THREADS = 40
# One per event loop.
_DATABASE_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("vseg-database-threads")
_COMPUTING_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("vseg-computing-thread")
_STOPPING: RunVar[threading.Event] = RunVar("vseg-stopping")

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("vseg.server")


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that waits for the database in a thread, and return its result.

    These threads have a limit of their own: while the database does not answer, static files are still sent and
    /health still answers.
    """
    limiter = _get_limiter(_DATABASE_LIMITER, DATABASE_THREADS)
    return await anyio.to_thread.run_sync(lambda: function(*args, **kwargs), limiter=limiter)


async def run_one_at_a_time(function: Callable[[Callable[[], None]], T]) -> T:
    """Run a function that computes for long in a thread, after the others that were passed to this function.

    Every thread that computes delays the requests of participants, and those that wait occupy no thread. The function
    is given another one to call now and then, which raises 503 once the server is being stopped.
    """
    limiter, stopping = _get_limiter(_COMPUTING_LIMITER, 1), _get_stopping()

    def check_running() -> None:
        if stopping.is_set():
            raise HTTPException(503, STOPPING, {"Retry-After": "5"})

    return await anyio.to_thread.run_sync(lambda: function(check_running), limiter=limiter)


def announce_stop() -> None:
    """End what `run_one_at_a_time` computes; call it in the event loop of a server that is being stopped."""
    _get_stopping().set()


def _get_stopping() -> threading.Event:
    try:
        return _STOPPING.get()
    except LookupError:
        stopping = threading.Event()
        _STOPPING.set(stopping)
        return stopping


def _get_limiter(variable: RunVar[anyio.CapacityLimiter], threads: int) -> anyio.CapacityLimiter:
    try:
        return variable.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(threads)
        variable.set(limiter)
        return limiter


async def read_body(request: Request, max_bytes: int = MAX_SMALL_BODY_BYTES) -> bytes:
    """Return the body of a request; raise 413 as soon as it is larger than `max_bytes`, 415 if it is compressed."""
    encodings = ", ".join(request.headers.getlist("content-encoding")).lower()
    if encodings not in ("", "identity"):
        raise HTTPException(
            415,
            f"Expected a body without compression, got Content-Encoding {encodings!r:.60}; leave it out.",
            {"Accept-Encoding": "identity"},
        )
    _check_size(request.headers.get("content-length", "0"), max_bytes)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            _check_size(size, max_bytes)
            parts.append(part)
    except ClientDisconnect:
        raise HTTPException(400, "The connection ended before the body did; send it again.") from None
    return b"".join(parts)


async def read_json(request: Request, shape: TypeAdapter[T], max_bytes: int = MAX_SMALL_BODY_BYTES) -> T:
    """Return the JSON body of a request, validated; raise `InvalidInput` if it does not have this shape."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HTTPException(
            415, f"Expected a body of type application/json, got {media_type or 'none'!r:.60}."
        )
    body = await read_body(request, max_bytes)
    try:
        return shape.validate_json(body)
    except ValidationError as error:
        raise InvalidInput(describe_request_errors(error.errors(include_url=False))) from None


def describe_request_errors(errors: Sequence[ErrorDetails]) -> str:
    """Describe the first error in a body: 'records[3].rt_ms should be a valid number, got "fast".'."""
    first = errors[0]
    # After an index pydantic adds the kind of the record, which is not part of the body's own path.
    steps = [step for before, step in pairwise(["", *first["loc"]]) if not isinstance(before, int)]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    problem = re.sub(r"^(Value error,|Input|List|String) ", "", first["msg"]).rstrip(".")
    if first["type"] in ("json_invalid", "missing", "extra_forbidden"):
        return f"{path or 'The body'}: {problem}."
    got = repr(first["input"])
    got = got if len(got) <= MAX_QUOTE_LENGTH else f"{got[:MAX_QUOTE_LENGTH]}…"
    return f"{path or 'The body'} {problem}, got {got}."


def error_response(status: int, name: str, message: str, **extras: Any) -> JSONResponse:
    """Return an error in the one shape that all errors have."""
    return JSONResponse({"error": name, "message": message, **extras}, status)


async def handle_vseg_error(request: Request, exception: Exception) -> Response:
    """Answer a `VsegError` with the status code of its type."""
    status = get_status_code(exception)
    extras = {"reason": exception.reason} if isinstance(exception, Conflict) else {}
    response = error_response(status, type(exception).__name__, get_public_message(exception), **extras)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        log.error("%s: %s", type(exception).__name__, exception)
        response.headers["Retry-After"] = "5"
    return response


def get_public_message(exception: Exception) -> str:
    """Return the message for the client; the address of the database and why it fails go to the log only."""
    return DATABASE_UNAVAILABLE if type(exception) is VsegError else str(exception)


def get_status_code(exception: Exception) -> int:
    """Return the HTTP status code of a `VsegError`."""
    return next(STATUS_CODES[kind] for kind in type(exception).__mro__ if kind in STATUS_CODES)


async def handle_http_error(request: Request, exception: Exception) -> Response:
    """Answer an error of HTTP itself, such as an unknown address, a wrong method or too large a body."""
    assert isinstance(exception, HTTPException)
    phrase = HTTPStatus(exception.status_code).phrase
    message = exception.detail
    if message == phrase:
        message = f"{phrase}: this server has no {request.method} {request.url.path!r:.200}."
    response = error_response(exception.status_code, phrase.replace(" ", "").replace("-", ""), message)
    response.headers.update(exception.headers or {})
    return response


async def handle_unexpected_error(request: Request, exception: Exception) -> Response:
    """Answer any other exception with 500; its traceback is in the log."""
    return error_response(
        500, "InternalServerError", "Something went wrong on the server; it has been logged. Try again."
    )


Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]  # the type that FastAPI expects
HANDLERS: dict[int | type[Exception], Handler] = {
    VsegError: handle_vseg_error,
    HTTPException: handle_http_error,
    Exception: handle_unexpected_error,
}


def _check_size(size: int | str, max_bytes: int) -> None:
    text = str(size)  # of a header, which may be no number, or one with too many digits for Python
    if text.isdecimal() and (len(text) > MAX_SIZE_DIGITS or int(text) > max_bytes):
        raise HTTPException(413, f"The body is larger than {max_bytes} bytes; send less at once.")
