"""Nothing can be guessed, tried in turn or told apart: tokens, links, names, passwords."""

import ast
import hmac
import json
import re
import secrets
import threading
import time
from base64 import urlsafe_b64encode
from hashlib import sha1, sha256
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

import vseg
from researchers import CHEAP_HASHER, PASSWORD, form_token
from roles import OTHER, PID, TINY
from servers import run_server
from vseg import store
from vseg.server import auth
from vseg.store import schema

ENTRY = "the-entry-of-a-page-that-several-share"
SOURCES = Path(vseg.__file__).parent
SECRET = re.compile(r"(^|_)(token|secret|password|nonce|link|entry)s?$")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("guessing")


@pytest.fixture(scope="module")
def server(folder):
    with run_server(f"sqlite:///{folder}/vseg.db", TINY, OTHER) as running:
        store.researchers.set_password(running.db, "Ann", CHEAP_HASHER.hash(PASSWORD))
        yield running


def test_tokens_have_enough_random_bits(server):
    """Each token has at least 128 random bits, and no character is the same in all tokens.

    Names of participants and sessions have only 50 bits, but give no access.
    """
    row = store.studies.get_study(server.db, "tiny")
    people = [server.begin().state for _ in range(40)]
    kinds = {
        "session": [person["token"] for person in people],
        "link": store.sessions.create_links(server.db, row, 40),
        "script": [
            store.tokens.create(server.db, "Ann", "t").removeprefix(store.tokens.PREFIX) for _ in range(40)
        ],
        "sign in": [auth.create_sign_in_token(server.db, "Ann") for _ in range(40)],
        "setup": [auth.create_setup_token(server.db) for _ in range(40)],
        "login": [
            auth.log_in_with_token(server.db, auth.create_sign_in_token(server.db, "Ann")).token for _ in range(40)
        ],
        "session of a page": [
            server.begin(entry=secrets.token_hex(16)).state["token"] for _ in range(20)
        ] + [server.begin(entry=ENTRY, prolific_pid=f"pid-{number}").state["token"] for number in range(20)],
    }  # fmt: skip
    for kind, tokens in kinds.items():
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{22,}", token) for token in tokens), kind
        assert len(set(tokens)) == 40, kind
        assert all(len(set(column)) > 1 for column in zip(*tokens, strict=True)), kind
    for name in ("participant", "session"):
        names = [person[name][1:] for person in people]
        assert all(len(set(column)) > 1 for column in zip(*names, strict=True))


def test_the_database_contains_only_hashes_of_secrets(server, folder):
    """A stolen database file contains no token of a session, no link and no login."""
    row = store.studies.get_study(server.db, "tiny")
    link = store.sessions.create_links(server.db, row, 1)[0]
    held = {
        "session": server.begin(entry="the-entry-of-one-page-alone").state["token"],
        "entry": "the-entry-of-one-page-alone",
        "link": link,
        "linked": server.begin(link=link).state["token"],
        "script": store.tokens.create(server.db, "Ann", "kept"),
        "sign in": auth.create_sign_in_token(server.db, "Ann"),
        "setup": auth.create_setup_token(server.db),
        "password": PASSWORD,
        "cookie": auth.log_in_with_token(server.db, auth.create_sign_in_token(server.db, "Ann")).token,
    }
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"token_hash" in content
    assert [kind for kind, secret in held.items() if secret.encode() in content] == []


def text64(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def signed_cookie(key: str) -> str:
    """Return a researcher's cookie as in schema 0002: signed with a key that was in the database."""
    said = json.dumps(["a nonce", "Ann", 0], separators=(",", ":")).encode()
    value = f"{text64(said)}.{text64(int(time.time()).to_bytes(4))}"
    derived = sha1(b"vseg researcher" + b"signer" + key.encode()).digest()
    return f"{value}.{text64(hmac.digest(derived, value.encode(), sha1))}"


def test_a_cookie_cannot_be_forged_from_a_stolen_database(server):
    """Whatever is in it, as it is and as a key to sign with: a copy or a backup once held the key of all cookies."""
    login = auth.log_in_with_token(server.db, auth.create_sign_in_token(server.db, "Ann"))
    with server.db.reading() as connection:
        values = {
            str(value)
            for table in (schema.settings, schema.logins, schema.researchers, schema.tokens)
            for row in connection.execute(select(table))
            for value in row
        }
    assert store.tokens.hash_token(login.token) in values
    tried = set(values)
    for key in values:
        tried |= {signed_cookie(key), text64(sha256(key.encode()).digest())}

    with httpx.Client(base_url=server.base, trust_env=False) as client:

        def asked(cookie: str) -> int:
            client.cookies.clear()
            return client.get("api/me", headers={"Cookie": f"{auth.COOKIE}={cookie}"}).status_code

        assert {asked(cookie) for cookie in tried if cookie.isascii() and cookie.isprintable()} == {401}
        assert asked(login.token) == 200
    assert "cookie_key" not in values


def test_a_login_starts_with_a_token_that_the_browser_did_not_have(server):
    """Whoever has put a cookie into someone's browser does not know the one after the login."""
    planted = "x" * 43
    with httpx.Client(base_url=server.base, trust_env=False, cookies={auth.COOKIE: planted}) as client:
        token = form_token(client.get("login").text)
        entered = client.post("login", data={"form_token": token, "name": "Ann", "password": PASSWORD})
        assert entered.status_code == 303
        assert entered.cookies[auth.COOKIE] != planted
    assert store.researchers.find_logged_in(server.db, planted) is None


def same_answer(*answers: httpx.Response) -> None:
    """No status, no word and no header tells these apart."""
    varying = ("date", "set-cookie")
    plain = [
        (
            answer.status_code,
            answer.content,
            {name: value for name, value in answer.headers.items() if name not in varying},
        )
        for answer in answers
    ]
    assert plain.count(plain[0]) == len(plain), plain


@pytest.mark.parametrize("what", ["session", "records", "complete", "leave"])
def test_a_token_of_another_study_is_refused_like_an_unknown_one(server, what):
    foreign, unknown = server.begin("other").state["token"], "x" * 32
    bodies = {"records": {"records": [{}]}, "complete": {"count": 0}, "leave": {"data": "withdraw"}}

    def asked(token: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        if what == "session":
            return server.client.get("s/tiny/session", headers=headers)
        return server.client.post(f"s/tiny/{what}", json=bodies[what], headers=headers)

    same_answer(asked(foreign), asked(unknown))
    assert asked(foreign).status_code == 401


def test_an_image_of_another_study_is_refused_like_an_unknown_one(server):
    foreign = server.begin("other").state["images"]["patches"]["url"]
    assert server.client.get(f"s/other/{foreign}").status_code == 200
    answers = [server.client.get(f"s/tiny/{url}") for url in (foreign, f"images/{'f' * 64}.png")]
    same_answer(*answers)
    assert answers[0].status_code == 404


def test_a_link_of_another_study_is_refused_like_an_unknown_one(server):
    foreign = store.sessions.create_links(server.db, store.studies.get_study(server.db, "other"), 1)[0]
    entries = [{"consented": True, "link": link} for link in (foreign, "x" * 32)]
    answers = [server.client.post("s/tiny/sessions", json=entry) for entry in entries]
    same_answer(*answers)
    assert answers[0].status_code == 409


def test_a_prolific_id_does_not_tell_who_took_part_elsewhere(server):
    """The same person in two studies is two participants, of names that have nothing in common."""
    first, second = (
        server.begin(study, prolific_pid=PID).state["participant"] for study in ("tiny", "other")
    )
    assert first != second


@pytest.mark.parametrize("known", ["setup?token=", "signin?token="])
def test_one_time_links_give_the_same_reply_to_all_wrong_tokens(server, known):
    used = auth.create_sign_in_token(server.db, "Ann")
    server.client.get(f"signin?token={used}")
    server.client.cookies.clear()
    answers = []
    for token in (used, "x" * 43, "", "%00", "é"):
        server.client.cookies.clear()
        answers.append(server.client.get(known + token))
    assert {answer.status_code for answer in answers} == {401}
    assert len({re.sub(r"[0-9a-f]{64}", "", answer.text) for answer in answers}) == 1


# ── passwords ──


def log_in(client: httpx.Client, name: str, password: str) -> httpx.Response:
    token = form_token(client.get("login").text)
    return client.post("login", data={"form_token": token, "name": name, "password": password})


def test_an_unknown_name_takes_as_long_as_a_wrong_password(server):
    """CPU time of this process, which serves: without the hash that nobody has, the ratio would be over ten."""
    auth.set_password(server.db, "Bob", PASSWORD)
    with httpx.Client(base_url=server.base, trust_env=False, timeout=60) as client:
        log_in(client, "Nobody at all", "wrong password")  # that hash is made once
        took = {}
        for name in ("Bob", "Someone"):
            begun = time.process_time()
            for _ in range(3):
                assert log_in(client, name, "wrong password").status_code == 401
            took[name] = time.process_time() - begun
    assert 1 / 3 < took["Bob"] / took["Someone"] < 3


def test_simultaneous_guesses_are_limited_like_successive_ones(server):
    """Before, all that arrived together were tried, however many had been wrong by then."""
    store.researchers.set_password(server.db, "Cid", CHEAP_HASHER.hash(PASSWORD))
    with httpx.Client(base_url=server.base, trust_env=False, timeout=60) as client:
        token = form_token(client.get("login").text)
        cookie = {"Cookie": f"{auth.COOKIE}={client.cookies[auth.COOKIE]}"}
        said: list[int] = []

        def guess(number: int) -> None:
            form = {"form_token": token, "name": "Cid", "password": f"wrong password {number}"}
            said.append(client.post("login", data=form, headers=cookie).status_code)

        begun = time.monotonic()
        threads = [threading.Thread(target=guess, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        waited = time.monotonic() - begun
    assert sorted(set(said)) == [401, 429]
    # After the free ones a guess each second, then each two, four, …: however slow this machine is.
    assert said.count(401) <= auth.FREE_ATTEMPTS + waited


# ── how secrets are compared ──


def test_secrets_are_compared_in_constant_time():
    """Secrets are looked up by their hash, or compared by hmac.compare_digest: == would take longer the more fits."""
    found = []
    for folder in ("server", "store"):
        for path in sorted((SOURCES / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Compare) and any(
                    isinstance(op, ast.Eq | ast.NotEq) for op in node.ops
                ):
                    sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
                    if any(SECRET.search(side) for side in sides) and not any(
                        ".c." in side for side in sides
                    ):
                        found.append(f"{path.relative_to(SOURCES)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
