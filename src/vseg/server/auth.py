"""How researchers log in: a one-time setup link, then a password, then a cookie; scripts use a personal token.

Every browser that opens a researchers' page has a random token as its cookie, and gets a new one with each login. The
database stores only the hash of a login's token, so a copy of the database cannot be used to make a cookie. Logging
out or changing the password deletes these rows. Forms and API calls that change something must come from this site
and bring a form token derived from the cookie (protection against cross-site request forgery).
A script sends a personal token in a header, which no other site can make a browser send, and nothing else.
Participants use none of this: their token is a header, and no route accepts both kinds.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Self
from urllib.parse import urlsplit

import anyio
import argon2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.errors import InvalidInput, NotAllowed
from vseg.server.html import root_path
from vseg.server.http import run_in_thread
from vseg.store.database import now_ms as clock_ms

COOKIE = "vseg_researcher"
LOGIN_LIFETIME_S = store.researchers.LOGIN_LIFETIME_MS // 1000
MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH, MAX_NAME_LENGTH = 12, 1000, 64
FREE_ATTEMPTS, MAX_WAIT_S, MAX_UNKNOWN_NAMES = 5, 60, 10_000
MAX_WAITING_LOGINS, OVERFLOW_REPLY_DELAY_S = 8, 2.0
SETUP_LINK_USED = (
    "This link was used or replaced, or is older than a week; ask for a new one (page Settings, or whoever runs the "
    "server)."
)
SIGN_IN_LINK_USED = "This link was used before or is too old; log in with your name and password."
WRONG_PASSWORD = "The name or the password is wrong; please try again."
TOO_MANY_LOGINS = "Too many people are logging in at this moment; wait 5 s and try again."
SETUP_SETTING = store.researchers.SETUP_SETTING
SETUP_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000

_hasher = argon2.PasswordHasher()


@dataclass(frozen=True)
class Visitor:
    """A browser on the researchers' pages: its cookie's token, and the name of the researcher if logged in."""

    token: str
    name: str | None = None
    is_new: bool = False

    @classmethod
    def new(cls, name: str | None = None) -> Self:
        """Return a visitor with a new token, whose browser has no cookie yet."""
        return cls(secrets.token_urlsafe(32), name, is_new=True)


class BrowserLogins:
    """The cookies and form tokens of browsers."""

    def __init__(self, db: store.Database):
        self._db = db

    def get_visitor(self, request: Request) -> Visitor:
        """Return the visitor for the request's cookie, or a new anonymous one."""
        visitor = _visitor_from_cookie(request)
        if visitor.is_new:
            return visitor
        return replace(visitor, name=store.researchers.find_logged_in(self._db, visitor.token))

    def form_token(self, visitor: Visitor) -> str:
        """Derive the token that this browser's forms and API calls must bring; it does not reveal the cookie."""
        return hmac.new(visitor.token.encode(), b"form", hashlib.sha256).hexdigest()

    def set_cookie(self, response: Response, request: Request, visitor: Visitor) -> None:
        """Set this browser's cookie."""
        response.set_cookie(
            COOKIE, visitor.token, max_age=LOGIN_LIFETIME_S, path=root_path(request) or "/",
            secure=request.url.scheme == "https", httponly=True, samesite="lax",
        )  # fmt: skip

    def check_form_token(self, request: Request, token: str) -> None:
        """Raise 403 unless a request comes from this site and brings the form token of its browser."""
        if not _is_same_site(request):
            raise HTTPException(403, "This request comes from another site; use the researchers' own pages.")
        expected = self.form_token(_visitor_from_cookie(request))
        if not hmac.compare_digest(expected.encode(), token.encode()):
            raise HTTPException(
                403, "This form is too old or from another browser; reload the page and send it again."
            )


def get_researcher_by_token(db: store.Database, request: Request) -> str | None:
    """Return the researcher whose personal token a request brings, or None if it brings none.

    Raise `NotAllowed` if the token is unknown, was revoked or has ended.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    name = store.tokens.find_researcher(db, token) if token.startswith(store.tokens.PREFIX) else None
    if name is None:
        raise NotAllowed(
            "This token is unknown, was revoked or is older than a year; make a new one on the page Settings."
        )
    return name


def delete_cookie(response: Response, request: Request) -> None:
    """Delete this browser's cookie."""
    response.delete_cookie(COOKIE, path=root_path(request) or "/", httponly=True, samesite="lax")


def create_setup_token(db: store.Database, *, now_ms: int | None = None) -> str:
    """Return a new one-time token to set a researcher's password, for a week; earlier ones become invalid."""
    token = secrets.token_urlsafe(24)
    ends_at_ms = (clock_ms() if now_ms is None else now_ms) + SETUP_LIFETIME_MS
    store.researchers.set_setting(db, SETUP_SETTING, f"{store.tokens.hash_token(token)} {ends_at_ms}")
    return token


def is_setup_token_valid(db: store.Database, token: str) -> bool:
    """Return whether this is the newest setup token, is still unused and not too old."""
    return _find_setup_setting(db, token) is not None


def _find_setup_setting(db: store.Database, token: str) -> str | None:
    """Return the stored value of a valid setup token, or None; a value without an end is of an earlier version."""
    stored = store.researchers.get_setting(db, SETUP_SETTING) or ""
    hashed, _, ends_at_ms = stored.partition(" ")
    is_this = hmac.compare_digest(hashed.encode(), store.tokens.hash_token(token).encode())
    return stored if is_this and ends_at_ms and clock_ms() < int(ends_at_ms) else None


def create_sign_in_token(db: store.Database, name: str) -> str:
    """Return a token for /signin that logs a researcher in once, within ten minutes."""
    return store.tokens.create_sign_in(db, name)


def log_in_with_token(db: store.Database, token: str) -> Visitor:
    """Use up a sign-in token; log its researcher in and return the visitor."""
    name = store.tokens.consume_sign_in(db, token)
    if name is None:
        raise NotAllowed(SIGN_IN_LINK_USED)
    return _start_login_now(db, name)


def set_password(db: store.Database, name: str, password: str) -> None:
    """Create a researcher, or change the password of an existing one."""
    store.researchers.set_password(db, check_name(name), _hasher.hash(check_password(password)))


async def change_password(
    db: store.Database, attempts: "LoginAttempts", name: str, old: str, password: str
) -> Visitor:
    """Change a password after checking the old one; end all logins of the researcher and start a new one."""
    check_password(password)
    await _verify_password(db, attempts, name, old)
    async with attempts.hashing:
        hashed = await run_in_thread(_hasher.hash, password)
    await run_in_thread(store.researchers.change_password, db, name, hashed)
    return await run_in_thread(_start_login_now, db, name)


async def set_up(db: store.Database, attempts: "LoginAttempts", token: str, name: str, password: str) -> None:
    """Use up a setup token; create a researcher, or change the password of an existing one."""
    name, password = check_name(name), check_password(password)
    stored = await run_in_thread(_find_setup_setting, db, token)
    if stored is None:
        raise NotAllowed(SETUP_LINK_USED)
    async with attempts.hashing:
        hashed = await run_in_thread(_hasher.hash, password)
    if not await run_in_thread(store.researchers.consume_setting, db, SETUP_SETTING, stored):
        raise NotAllowed(SETUP_LINK_USED)
    await run_in_thread(store.researchers.set_password, db, name, hashed)
    attempts.clear(name)


def check_name(name: str) -> str:
    """Return a researcher's name without surrounding spaces; raise `InvalidInput` if it cannot be used."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidInput(f"A name has 1 to {MAX_NAME_LENGTH} characters, got {len(name)}.")
    return name


def check_password(password: str) -> str:
    """Return the password; raise `InvalidInput` if it is too short or too long."""
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise InvalidInput(f"A password has at least {MIN_PASSWORD_LENGTH} characters, got {len(password)}.")
    return password


async def log_in_with_password(
    db: store.Database, attempts: "LoginAttempts", name: str, password: str
) -> Visitor:
    """Log a researcher in and return the visitor; raise 401 for a wrong password and 429 after too many."""
    name = name.strip()[:MAX_NAME_LENGTH].replace("\0", "")
    # Read before the password is verified: if it is changed meanwhile, this login must fail.
    signed_out_at_ms = await run_in_thread(store.researchers.get_signed_out_at_ms, db, name)
    await _verify_password(db, attempts, name, password)
    return await run_in_thread(_start_login, db, name, signed_out_at_ms)


async def _verify_password(db: store.Database, attempts: "LoginAttempts", name: str, password: str) -> None:
    attempts.check_wait(name)
    stored_hash = await run_in_thread(store.researchers.get_password_hash, db, name)
    if attempts.is_queue_full:
        await _verify_in_overflow(attempts, name, stored_hash, password)
        return
    async with attempts.hashing:
        # Checked again: while this attempt waited, others at the same name may have failed.
        attempts.check_wait(name)
        is_right = await run_in_thread(_matches, stored_hash, password[:MAX_PASSWORD_LENGTH])
        if stored_hash is None or not is_right:
            attempts.add_failure(name, is_known=stored_hash is not None)
            raise NotAllowed(WRONG_PASSWORD)
        attempts.clear(name)


async def _verify_in_overflow(
    attempts: "LoginAttempts", name: str, stored_hash: str | None, password: str
) -> None:
    """Verify a password while the queue is full: a right one still logs in, every other attempt gets 429.

    The reply and its delay are the same whether or not the name exists. Unknown names take no time here, so any number
    of them cannot keep a researcher out; guesses at an existing name are limited by `check_wait`.
    """
    reply_at = anyio.current_time() + OVERFLOW_REPLY_DELAY_S
    attempts.check_wait(name)
    attempts.add_failure(name, is_known=stored_hash is not None)  # cleared below if the password is right
    if stored_hash is not None:
        async with attempts.overflow_hashing:
            if await run_in_thread(_matches, stored_hash, password[:MAX_PASSWORD_LENGTH]):
                attempts.clear(name)
                return
    await anyio.sleep_until(reply_at)
    raise HTTPException(429, TOO_MANY_LOGINS, {"Retry-After": "5"})


def _start_login(db: store.Database, name: str, signed_out_at_ms: int | None) -> Visitor:
    """Store a login under a new token; raise `NotAllowed` if the researcher was signed out since that time."""
    visitor = Visitor.new(name)
    if not store.researchers.log_in(db, name, visitor.token, signed_out_at_ms):
        raise NotAllowed(WRONG_PASSWORD)
    return visitor


def _start_login_now(db: store.Database, name: str) -> Visitor:
    return _start_login(db, name, store.researchers.get_signed_out_at_ms(db, name))


def _visitor_from_cookie(request: Request) -> Visitor:
    """Return the visitor for a well-formed cookie, without checking for a login; else a new one."""
    token = request.cookies.get(COOKIE, "")
    return Visitor(token) if re.fullmatch(r"[A-Za-z0-9_-]{43}", token) else Visitor.new()


class LoginAttempts:
    """Failed logins by name, in memory: after a few failures, each one makes the name wait longer.

    Attributes
    ----------
    hashing : anyio.Lock
        Held while a password is hashed. Hashing takes 64 MB and a core for a moment; many at once would stop the
        experiment.
    overflow_hashing : anyio.Lock
        The same for attempts that arrive while `MAX_WAITING_LOGINS` wait for `hashing`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.hashing, self.overflow_hashing = anyio.Lock(), anyio.Lock()
        self._clock = clock
        self._failures: dict[str, tuple[int, float]] = {}  # number of failures, and until when to wait
        self._unknown_names: OrderedDict[str, None] = OrderedDict()  # limited, since anyone can invent names

    @property
    def is_queue_full(self) -> bool:
        """Whether the maximum number of logins is waiting."""
        return self.hashing.statistics().tasks_waiting >= MAX_WAITING_LOGINS

    def check_wait(self, name: str) -> None:
        """Raise 429 while this name has to wait."""
        _, until = self._failures.get(name, (0, 0.0))
        if (wait := until - self._clock()) > 0:
            raise HTTPException(
                429,
                f"Too many wrong passwords; wait {wait:.0f} s and try again.",
                {"Retry-After": f"{wait:.0f}"},
            )

    def add_failure(self, name: str, *, is_known: bool = True) -> None:
        """Count a wrong password; if there are too many unknown names, forget the oldest."""
        count = self._failures.get(name, (0, 0.0))[0] + 1
        wait = min(2.0 ** min(count - FREE_ATTEMPTS, 10), MAX_WAIT_S) if count >= FREE_ATTEMPTS else 0.0
        self._failures[name] = (count, self._clock() + wait)
        self._unknown_names.pop(name, None)
        if not is_known:
            self._unknown_names[name] = None
        while len(self._unknown_names) > MAX_UNKNOWN_NAMES:
            self._failures.pop(self._unknown_names.popitem(last=False)[0], None)

    def clear(self, name: str) -> None:
        """Forget the failures of a name after a right password."""
        self._failures.pop(name, None)


@cache
def _random_hash() -> str:
    return _hasher.hash(secrets.token_urlsafe())


def _matches(stored_hash: str | None, password: str) -> bool:
    """Return whether this is the password; without a stored hash, return False after the same time."""
    try:
        return _hasher.verify(stored_hash or _random_hash(), password)
    except argon2.exceptions.VerificationError:
        return False


def _is_same_site(request: Request) -> bool:
    """Return False if the browser says that a request comes from another site.

    Programs that send neither header still need the form token.
    """
    if fetch_site := request.headers.get("sec-fetch-site"):
        return fetch_site in ("same-origin", "none")
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:  # such as http://[, which no browser sends
        return False
