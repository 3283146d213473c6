"""Test sign-in links and changing a password."""

import httpx
import pytest
from starlette.exceptions import HTTPException

from servers import run_server
from vseg import store
from vseg.errors import InvalidInput, NotAllowed
from vseg.server import auth

OLD, NEW = "correct horse battery", "another horse battery"


@pytest.fixture
def server(database_url):
    with run_server(database_url) as running:
        auth.set_password(running.db, "Ann", OLD)
        yield running


def test_sign_in_link_works_once(server):
    token = auth.create_sign_in_token(server.db, "Ann")
    assert server.client.get(f"signin?token={token}").status_code == 303
    assert server.client.get("api/me").json()["name"] == "Ann"
    with httpx.Client(base_url=server.base, trust_env=False) as stranger:
        again = stranger.get(f"signin?token={token}")
        assert (again.status_code, "used before or is too old" in again.text) == (401, True)
        assert stranger.get("signin").status_code == 401
        assert stranger.get("api/me").status_code == 401


def test_signing_out_ends_a_login_by_link(server):
    server.client.get(f"signin?token={auth.create_sign_in_token(server.db, 'Ann')}")
    store.researchers.log_out(server.db, "Ann")
    assert server.client.get("api/me").status_code == 401


@pytest.mark.anyio
async def test_changing_a_password_requires_the_old_one(server):
    db, attempts = server.db, auth.LoginAttempts()
    before = await auth.log_in_with_password(db, attempts, "Ann", OLD)
    with pytest.raises(NotAllowed, match="name or the password is wrong"):
        await auth.change_password(db, attempts, "Ann", "wrong password", NEW)
    with pytest.raises(InvalidInput, match="at least 12 characters, got 5"):
        await auth.change_password(db, attempts, "Ann", OLD, "short")
    after = await auth.change_password(db, attempts, "Ann", OLD, NEW)
    assert [store.researchers.find_logged_in(db, visitor.token) for visitor in (before, after)] == [
        None,
        "Ann",
    ]
    assert (await auth.log_in_with_password(db, attempts, "Ann", NEW)).name == "Ann"
    with pytest.raises((NotAllowed, HTTPException)):
        await auth.log_in_with_password(db, attempts, "Ann", OLD)


@pytest.fixture
def anyio_backend():
    return "asyncio"
