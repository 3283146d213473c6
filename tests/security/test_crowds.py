"""Test many simultaneous login attempts with known and unknown names: a right password still works."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import httpx
import pytest
from starlette.exceptions import HTTPException

from researchers import CHEAP_HASHER, PASSWORD, form_token
from servers import STUDY, register_studies
from vseg import store
from vseg.errors import NotAllowed
from vseg.server import auth
from vseg.server.app import create_app

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setattr(auth, "OVERFLOW_REPLY_DELAY_S", 0)
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        register_studies(db, STUDY)
        for name in ("Ann", "Bob"):
            store.researchers.set_password(db, name, CHEAP_HASHER.hash(PASSWORD))
        yield db


@asynccontextmanager
async def crowd(db: store.Database, attempts: auth.LoginAttempts) -> AsyncIterator[list[str]]:
    """Fill the queue of login attempts while one is being checked; yield the list of replies."""
    told: list[str] = []

    async def guess(number: int) -> None:
        told.append((await refusal(db, attempts, f"Nobody {number}"))[1])

    async with anyio.create_task_group() as group, attempts.hashing:
        for number in range(auth.MAX_WAITING_LOGINS):
            group.start_soon(guess, number)
        while not attempts.is_queue_full:
            await anyio.lowlevel.checkpoint()
        yield told


async def refusal(db: store.Database, attempts: auth.LoginAttempts, name: str) -> tuple[int, str, str]:
    """Return the reply to a wrong password."""
    try:
        await auth.log_in_with_password(db, attempts, name, "a wrong password")
    except HTTPException as error:
        return error.status_code, error.detail, (error.headers or {})["Retry-After"]
    except NotAllowed as error:
        return 401, str(error), ""
    raise AssertionError("let in")


async def test_a_right_password_works_while_the_queue_is_full(db):
    """None of the waiting attempts has been checked by then."""
    attempts = auth.LoginAttempts()
    async with crowd(db, attempts) as told:
        assert (await auth.log_in_with_password(db, attempts, "Ann", PASSWORD)).name == "Ann"
        assert told == []
    assert told == [auth.WRONG_PASSWORD] * auth.MAX_WAITING_LOGINS
    assert not attempts.is_queue_full


async def test_refusals_do_not_reveal_which_names_exist(db):
    """After five guesses each name has a waiting time, whether or not it exists."""
    attempts = auth.LoginAttempts(clock=lambda: 0.0)
    async with crowd(db, attempts):
        said = {name: [await refusal(db, attempts, name) for _ in range(7)] for name in ("Ann", "Someone")}
        with pytest.raises(HTTPException, match="Too many wrong passwords"):
            await auth.log_in_with_password(db, attempts, "Ann", PASSWORD)
        assert (await auth.log_in_with_password(db, attempts, "Bob", PASSWORD)).name == "Bob"
    assert said["Ann"] == said["Someone"]
    assert said["Ann"][:5] == [(429, auth.TOO_MANY_LOGINS, "5")] * 5
    assert [status for status, _, _ in said["Ann"]] == [429] * 7
    assert "Too many wrong passwords" in said["Ann"][5][1]


async def test_a_right_password_leaves_no_failed_attempt(db):
    attempts = auth.LoginAttempts()
    async with crowd(db, attempts):
        for _ in range(2 * auth.FREE_ATTEMPTS):
            await auth.log_in_with_password(db, attempts, "Ann", PASSWORD)


async def test_the_page_shows_the_refusal(db):
    served = create_app(db)
    attempts = served.app.app.router.default.load().state.login_attempts
    transport = httpx.ASGITransport(app=served)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client, crowd(db, attempts):
        token = form_token((await client.get("/login")).text)
        form = {"form_token": token, "name": "Zed", "password": "a wrong password"}
        late = await client.post("/login", data=form)
        assert (late.status_code, late.headers["retry-after"]) == (429, "5")
        assert auth.TOO_MANY_LOGINS in late.text
        assert (
            await client.post("/login", data=form | {"name": "Ann", "password": PASSWORD})
        ).status_code == 303


def test_invented_names_do_not_allow_more_guesses_at_a_real_one(monkeypatch):
    """Invented names replace each other, oldest first."""
    monkeypatch.setattr(auth, "MAX_UNKNOWN_NAMES", 3)
    attempts = auth.LoginAttempts(clock=lambda: 0.0)
    for _ in range(auth.FREE_ATTEMPTS):
        attempts.add_failure("Ann")
        attempts.add_failure("first", is_known=False)
    for number in range(3):
        attempts.add_failure(f"Nobody {number}", is_known=False)
    with pytest.raises(HTTPException):
        attempts.check_wait("Ann")
    attempts.check_wait("first")


def test_the_waiting_time_is_limited():
    """After a thousand guesses the exponential waiting time once overflowed."""
    now = [0.0]
    attempts = auth.LoginAttempts(clock=lambda: now[0])
    for _ in range(2000):
        attempts.add_failure("Ann")
    now[0] += auth.MAX_WAIT_S
    attempts.check_wait("Ann")
