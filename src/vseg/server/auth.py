"""Who the researcher is: a one-time link first, then a password, then a cookie; or a script's token.

Every browser that opens a researcher's page has a random token as its cookie, a new one with each login. Of a login the
database holds the token's hash, and no key of any kind: a copy of it makes no cookie. Logging out and a new password
delete those rows. Forms and API calls that change something bring a token made from the cookie's, and come from this
very site.
A script brings a personal token in a header, which no other site can make a browser send, and nothing else.
Participants have nothing of this: their token is a header, and no route looks at both.
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

COOKIE = "vseg_researcher"
LOGIN_LIFETIME_S = store.researchers.LOGIN_LIFETIME_MS // 1000
MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH, MAX_NAME_LENGTH = 12, 1000, 64
FREE_ATTEMPTS, MAX_WAIT_S, MAX_UNKNOWN_NAMES = 5, 60, 10_000
MAX_WAITING_LOGINS, OVERFLOW_REPLY_DELAY_S = 8, 2.0
SETUP_LINK_USED = (
    "This link was used or replaced; ask for a new one (Settings, or vseg serve --new-researcher-link)."
)
SIGN_IN_LINK_USED = "This link was used before or is too old; log in with your name and password."
WRONG_PASSWORD = "The name or the password is wrong; please try again."
TOO_MANY_LOGINS = "Many are logging in at this moment; wait 5 s and try again."
SETUP_SETTING = store.researchers.SETUP_SETTING

_hasher = argon2.PasswordHasher()


@dataclass(frozen=True)
class Visitor:
    """A browser on the researcher's pages, by its cookie's token: who is logged in there, if anyone."""

    token: str
    name: str | None = None
    is_new: bool = False

    @classmethod
    def new(cls, name: str | None = None) -> Self:
        """Someone whose cookie is not there yet."""
        return cls(secrets.token_urlsafe(32), name, is_new=True)


class BrowserLogins:
    """Cookies and form tokens: given, and recognised."""

    def __init__(self, db: store.Database):
        self._db = db

    def visitor(self, request: Request) -> Visitor:
        """Who this is, by the cookie and the database; a new nobody where there is no cookie, or none like ours."""
        visitor = _by_cookie(request)
        if visitor.is_new:
            return visitor
        return replace(visitor, name=store.researchers.find_logged_in(self._db, visitor.token))

    def form_token(self, visitor: Visitor) -> str:
        """What forms and API calls of this browser bring along; it tells nothing of the cookie."""
        return hmac.new(visitor.token.encode(), b"form", hashlib.sha256).hexdigest()

    def remember(self, response: Response, request: Request, visitor: Visitor) -> None:
        """Give this browser its cookie."""
        response.set_cookie(
            COOKIE, visitor.token, max_age=LOGIN_LIFETIME_S, path=root_path(request) or "/",
            secure=request.url.scheme == "https", httponly=True, samesite="lax",
        )  # fmt: skip

    def check_from_here(self, request: Request, token: str) -> None:
        """403 unless a request that changes something comes from a page of ours, in this browser."""
        if not _same_site(request):
            raise HTTPException(403, "This request comes from another site; use the researcher's own pages.")
        expected = self.form_token(_by_cookie(request))
        if not hmac.compare_digest(expected.encode(), token.encode()):
            raise HTTPException(
                403, "This form is too old or not from here; reload the page and send it again."
            )


def get_researcher_by_token(db: store.Database, request: Request) -> str | None:
    """The researcher whose personal token a request brings; None if it brings none, `NotAllowed` if it is not good."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    name = store.tokens.find_researcher(db, token) if token.startswith(store.tokens.PREFIX) else None
    if name is None:
        raise NotAllowed("This token is not known here, or was revoked; make one on the page Settings.")
    return name


def delete_cookie(response: Response, request: Request) -> None:
    """Take the cookie back."""
    response.delete_cookie(COOKIE, path=root_path(request) or "/", httponly=True, samesite="lax")


def create_setup_token(db: store.Database) -> str:
    """A one-time token to set a researcher's password; those given before are void."""
    token = secrets.token_urlsafe(24)
    store.researchers.set_setting(db, SETUP_SETTING, store.tokens.hash_token(token))
    return token


def is_setup_token_valid(db: store.Database, token: str) -> bool:
    """Whether this is the token of the one-time link that was printed last."""
    stored = store.researchers.get_setting(db, SETUP_SETTING) or ""
    return hmac.compare_digest(stored.encode(), store.tokens.hash_token(token).encode())


def create_sign_in_token(db: store.Database, name: str) -> str:
    """A token for /signin that logs a researcher in, once and within ten minutes."""
    return store.tokens.create_sign_in(db, name)


def sign_in(db: store.Database, token: str) -> Visitor:
    """The researcher of such a link, logged in; the token is used up."""
    name = store.tokens.consume_sign_in(db, token)
    if name is None:
        raise NotAllowed(SIGN_IN_LINK_USED)
    return _logged_in_now(db, name)


def set_password(db: store.Database, name: str, password: str) -> None:
    """Make a researcher, or give the one of this name another password."""
    store.researchers.set_password(db, check_name(name), _hasher.hash(check_password(password)))


async def change_password(
    db: store.Database, tries: "LoginAttempts", name: str, old: str, password: str
) -> Visitor:
    """Another password for someone who knows the old one: all logins of before end, and this one is new."""
    check_password(password)
    await _check_password(db, tries, name, old)
    async with tries.one_at_a_time:
        hashed = await run_in_thread(_hasher.hash, password)
    await run_in_thread(store.researchers.change_password, db, name, hashed)
    return await run_in_thread(_logged_in_now, db, name)


async def set_up(db: store.Database, tries: "LoginAttempts", token: str, name: str, password: str) -> None:
    """Make a researcher, or give the one of this name another password; the token is used up."""
    name, password = check_name(name), check_password(password)
    if not await run_in_thread(is_setup_token_valid, db, token):
        raise NotAllowed(SETUP_LINK_USED)
    async with tries.one_at_a_time:
        hashed = await run_in_thread(_hasher.hash, password)
    if not await run_in_thread(
        store.researchers.consume_setting, db, SETUP_SETTING, store.tokens.hash_token(token)
    ):
        raise NotAllowed(SETUP_LINK_USED)
    await run_in_thread(store.researchers.set_password, db, name, hashed)
    tries.succeeded(name)


def check_name(name: str) -> str:
    """A researcher's name as it is stored."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidInput(f"A name has 1 to {MAX_NAME_LENGTH} characters, got {len(name)}.")
    return name


def check_password(password: str) -> str:
    """A password that is long enough."""
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise InvalidInput(f"A password has at least {MIN_PASSWORD_LENGTH} characters, got {len(password)}.")
    return password


async def log_in(db: store.Database, tries: "LoginAttempts", name: str, password: str) -> Visitor:
    """The researcher, logged in, if the password is right; 429 for those who guess too often."""
    name = name.strip()[:MAX_NAME_LENGTH].replace("\0", "")
    # Asked before the password is: one that changes meanwhile ends this login, too.
    signed_out_at_ms = await run_in_thread(store.researchers.get_signed_out_at_ms, db, name)
    await _check_password(db, tries, name, password)
    return await run_in_thread(_logged_in, db, name, signed_out_at_ms)


async def _check_password(db: store.Database, tries: "LoginAttempts", name: str, password: str) -> None:
    tries.check(name)
    stored = await run_in_thread(store.researchers.get_password_hash, db, name)
    if tries.is_crowded:
        await _check_late(tries, name, stored, password)
        return
    async with tries.one_at_a_time:
        # Once more: of a hundred guesses at once, all but a few find here that others were wrong meanwhile.
        tries.check(name)
        right = await run_in_thread(_matches, stored, password[:MAX_PASSWORD_LENGTH])
        if stored is None or not right:
            tries.failed(name, is_known=stored is not None)
            raise NotAllowed(WRONG_PASSWORD)
        tries.succeeded(name)


async def _check_late(tries: "LoginAttempts", name: str, stored: str | None, password: str) -> None:
    """For those who come when enough wait: a right password is let in by another door, all others hear 429.

    They hear the same and equally late, whether or not there is someone of that name. Names that do not exist cost
    nothing here, so that no number of them keeps a researcher out; guesses at one that does are few, by `check`.
    """
    told_at = anyio.current_time() + OVERFLOW_REPLY_DELAY_S
    tries.check(name)
    tries.failed(name, is_known=stored is not None)  # forgotten again if it is right
    if stored is not None:
        async with tries.door_of_the_late:
            if await run_in_thread(_matches, stored, password[:MAX_PASSWORD_LENGTH]):
                tries.succeeded(name)
                return
    await anyio.sleep_until(told_at)
    raise HTTPException(429, TOO_MANY_LOGINS, {"Retry-After": "5"})


def _logged_in(db: store.Database, name: str, signed_out_at_ms: int | None) -> Visitor:
    """A login of its own, under a token that nobody had before."""
    visitor = Visitor.new(name)
    if not store.researchers.log_in(db, name, visitor.token, signed_out_at_ms):
        raise NotAllowed(WRONG_PASSWORD)
    return visitor


def _logged_in_now(db: store.Database, name: str) -> Visitor:
    return _logged_in(db, name, store.researchers.get_signed_out_at_ms(db, name))


def _by_cookie(request: Request) -> Visitor:
    """A browser with a cookie like ours, whether or not it is a login's; else a new one."""
    token = request.cookies.get(COOKIE, "")
    return Visitor(token) if re.fullmatch(r"[A-Za-z0-9_-]{43}", token) else Visitor.new()


class LoginAttempts:
    """Failed logins by name, in memory: after a few, each one makes the next wait longer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        # A verification takes 64 MB and a core for a moment; many at once would be a way to stop the experiment.
        self.one_at_a_time, self.door_of_the_late = anyio.Lock(), anyio.Lock()
        self._clock = clock
        self._failed: dict[str, tuple[int, float]] = {}
        self._unknown: OrderedDict[str, None] = OrderedDict()  # those of nobody: there is no end to them

    @property
    def is_crowded(self) -> bool:
        """Whether as many wait for their turn as may."""
        return self.one_at_a_time.statistics().tasks_waiting >= MAX_WAITING_LOGINS

    def check(self, name: str) -> None:
        """429 while this name has to wait."""
        _, until = self._failed.get(name, (0, 0.0))
        if (wait := until - self._clock()) > 0:
            raise HTTPException(
                429,
                f"Too many wrong passwords; wait {wait:.0f} s and try again.",
                {"Retry-After": f"{wait:.0f}"},
            )

    def failed(self, name: str, *, is_known: bool = True) -> None:
        """One more wrong password. Of names that nobody has, those tried longest ago make room."""
        count = self._failed.get(name, (0, 0.0))[0] + 1
        wait = min(2.0 ** min(count - FREE_ATTEMPTS, 10), MAX_WAIT_S) if count >= FREE_ATTEMPTS else 0.0
        self._failed[name] = (count, self._clock() + wait)
        self._unknown.pop(name, None)
        if not is_known:
            self._unknown[name] = None
        while len(self._unknown) > MAX_UNKNOWN_NAMES:
            self._failed.pop(self._unknown.popitem(last=False)[0], None)

    def succeeded(self, name: str) -> None:
        """The right one: all is forgotten."""
        self._failed.pop(name, None)


@cache
def _nobodys() -> str:
    return _hasher.hash(secrets.token_urlsafe())


def _matches(hashed: str | None, password: str) -> bool:
    """Whether this is the password; for an unknown name no, after the same time."""
    try:
        return _hasher.verify(hashed or _nobodys(), password)
    except argon2.exceptions.VerificationError:
        return False


def _same_site(request: Request) -> bool:
    """Browsers say where a request comes from; programs without these headers still need the token."""
    if fetched := request.headers.get("sec-fetch-site"):
        return fetched in ("same-origin", "none")
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:  # such as http://[, which no browser sends
        return False
