"""Test the researchers' login (one-time link, password, cookie, form token) and what it gives access to."""

import html
import io
import re
import zipfile
from http.cookies import SimpleCookie

import httpx
import pytest
from starlette.exceptions import HTTPException

from researchers import NAME, PASSWORD, form_token, log_in, post_form
from servers import STUDY, response, run_server
from vseg import store
from vseg.errors import VsegError
from vseg.server import auth
from vseg.store.database import now_ms


@pytest.fixture
def server(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as running:
        yield running


@pytest.fixture
def on_both(database_url):
    """Return a server on each database, for what depends on the database."""
    with run_server(database_url) as running:
        yield running


@pytest.fixture
def logged_in(server):
    log_in(server)
    return server


@pytest.fixture
def logged_in_on_both(on_both):
    log_in(on_both)
    return on_both


def test_one_time_link_works_once(on_both):
    client, token = on_both.client, auth.create_setup_token(on_both.db)
    assert "Choose a name and a password" in client.get(f"setup?token={token}").text
    assert post_form(client, "setup", token=token, name=NAME, password=PASSWORD).status_code == 303
    again = post_form(client, "setup", token=token, name="Eve", password=PASSWORD)
    assert again.status_code == client.get(f"setup?token={token}").status_code == 401
    assert "was used or replaced, or is older than a week; ask for a new one" in again.text
    assert store.researchers.count_researchers(on_both.db) == 1
    assert post_form(client, "login", name=NAME, password=PASSWORD).headers["location"] == "/"
    assert client.get("api/me").json()["name"] == NAME


def test_new_link_replaces_an_unused_one(server):
    old, new = auth.create_setup_token(server.db), auth.create_setup_token(server.db)
    assert server.client.get(f"setup?token={old}").status_code == 401
    assert server.client.get(f"setup?token={new}").status_code == 200
    assert server.client.get("setup").status_code == 401


def test_one_time_link_ends_after_a_week(server):
    made_at_ms = now_ms() - auth.SETUP_LIFETIME_MS
    token = auth.create_setup_token(server.db, now_ms=made_at_ms - 1)
    assert server.client.get(f"setup?token={token}").status_code == 401
    assert post_form(server.client, "setup", token=token, name=NAME, password=PASSWORD).status_code == 401
    token = auth.create_setup_token(server.db, now_ms=made_at_ms + 60_000)
    assert server.client.get(f"setup?token={token}").status_code == 200


def test_only_hashes_of_token_and_password_are_stored(server):
    token = auth.create_setup_token(server.db)
    assert token not in (store.researchers.get_setting(server.db, auth.SETUP_SETTING) or "")
    post_form(server.client, "setup", token=token, name=NAME, password=PASSWORD)
    stored = store.researchers.get_password_hash(server.db, NAME)
    assert stored.startswith("$argon2id$")
    assert PASSWORD not in stored


def test_rejected_password_does_not_use_up_the_link(server):
    token = auth.create_setup_token(server.db)
    short = post_form(server.client, "setup", token=token, name=NAME, password="short")
    assert short.status_code == 422
    assert "at least 12 characters, got 5" in short.text
    assert post_form(server.client, "setup", token=token, name=" ", password=PASSWORD).status_code == 422
    assert post_form(server.client, "setup", token=token, name=NAME, password=PASSWORD).status_code == 303


def test_wrong_passwords(server):
    log_in(server)
    with httpx.Client(base_url=server.base, trust_env=False, timeout=60) as stranger:
        unknown = post_form(stranger, "login", name="Nobody", password=PASSWORD)
        wrong = post_form(stranger, "login", name=NAME, password="wrong password")
        assert unknown.status_code == wrong.status_code == 401
        message = "The name or the password is wrong; please try again."
        assert message in unknown.text
        assert message in wrong.text
        assert stranger.get("api/me").status_code == 401


def test_repeated_wrong_passwords_have_to_wait(server):
    """The waits grow, so that one of the attempts comes too early however slow the machine is."""
    log_in(server)
    with httpx.Client(base_url=server.base, trust_env=False, timeout=60) as stranger:
        guesses = (post_form(stranger, "login", name=NAME, password=f"wrong password {n}") for n in range(20))
        late = next(answer for answer in guesses if answer.status_code != 401)
        assert late.status_code == 429
        assert "Too many wrong passwords; wait" in late.text
        assert int(late.headers["retry-after"]) >= 0


def test_waits_grow_and_are_cleared_by_a_login():
    now = [0.0]
    attempts = auth.LoginAttempts(clock=lambda: now[0])
    for _ in range(auth.FREE_ATTEMPTS):
        attempts.check_wait("Ann")
        attempts.add_failure("Ann")
    for wait in (1, 2, 4, 8, 16, 32, 60, 60):
        now[0] += wait - 0.1
        with pytest.raises(HTTPException):
            attempts.check_wait("Ann")
        attempts.check_wait("Bob")
        now[0] += 0.1
        attempts.check_wait("Ann")
        attempts.add_failure("Ann")
    attempts.clear("Ann")
    attempts.check_wait("Ann")


def test_attributes_of_the_cookie(server):
    log_in(server)
    client = server.client
    answer = post_form(client, "login", name=NAME, password=PASSWORD)
    cookie = SimpleCookie(answer.headers["set-cookie"])[auth.COOKIE]
    assert cookie["httponly"]
    assert (cookie["samesite"], cookie["path"], cookie["max-age"]) == ("lax", "/", str(12 * 3600))
    assert not cookie["secure"]
    secured = client.get("login", headers={"X-Forwarded-Proto": "https", "Cookie": ""})
    assert SimpleCookie(secured.headers["set-cookie"])[auth.COOKIE]["secure"]


def test_forged_cookies_are_rejected(logged_in):
    cookie = logged_in.client.cookies[auth.COOKIE]
    for forged in ("", "x", cookie[:-2] + "aa", "eyJhIjoxfQ.x.y", cookie[:-1]):
        answer = httpx.get(
            f"{logged_in.base}api/me", headers={"Cookie": f"{auth.COOKIE}={forged}"}, trust_env=False
        )
        assert answer.status_code == 401


def test_logging_out(logged_in):
    assert logged_in.client.get("api/me").json()["name"] == NAME
    assert post_form(logged_in.client, "logout").status_code == 303
    assert logged_in.client.get("api/me").status_code == 401
    assert logged_in.client.get("").headers["location"] == "/login"


def test_logging_out_ends_all_logins(logged_in_on_both):
    """A copied cookie is no longer valid after logging out; a new login works at once."""
    server = logged_in_on_both
    copied = {"Cookie": f"{auth.COOKIE}={server.client.cookies[auth.COOKIE]}"}
    assert httpx.get(f"{server.base}api/me", headers=copied, trust_env=False, timeout=60).status_code == 200
    post_form(server.client, "logout")
    assert httpx.get(f"{server.base}api/me", headers=copied, trust_env=False, timeout=60).status_code == 401
    assert httpx.get(server.base, headers=copied, trust_env=False, timeout=60).headers["location"] == "/login"
    assert post_form(server.client, "login", name=NAME, password=PASSWORD).headers["location"] == "/"
    assert server.client.get("api/me").status_code == 200
    assert httpx.get(f"{server.base}api/me", headers=copied, trust_env=False, timeout=60).status_code == 401


def test_one_time_link_sets_a_new_password_or_adds_a_researcher(logged_in_on_both):
    server, other = logged_in_on_both, "another horse battery"
    with httpx.Client(base_url=server.base, trust_env=False, timeout=60) as client:
        for name in (NAME, "Bob"):
            token = auth.create_setup_token(server.db)
            assert post_form(client, "setup", token=token, name=name, password=other).status_code == 303
        assert server.client.get("api/me").status_code == 401, "logins with the old password have ended"
        assert post_form(client, "login", name=NAME, password=PASSWORD).status_code == 401
        for name in (NAME, "Bob"):
            assert post_form(client, "login", name=name, password=other).status_code == 303
            assert client.get("api/me").json()["name"] == name
    assert store.researchers.count_researchers(server.db) == 2


def test_forms_from_other_sites_are_rejected(logged_in):
    """The browser sends the cookie, but another site has neither the form token nor the right origin."""
    client, token = logged_in.client, form_token(logged_in.client.get("login").text)
    bad = [
        ({}, {}),
        ({"form_token": "0" * 64}, {}),
        ({"form_token": token}, {"Sec-Fetch-Site": "cross-site"}),
        ({"form_token": token}, {"Sec-Fetch-Site": "same-site"}),
        ({"form_token": token}, {"Origin": "https://evil.example"}),
        ({"form_token": token}, {"Origin": "null"}),
    ]
    for data, headers in bad:
        answer = client.post("studies/tiny/close", data=data, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (403, "Forbidden")
    for headers in ({}, {"X-CSRF-Token": "wrong"}, {"X-CSRF-Token": token, "Sec-Fetch-Site": "cross-site"}):
        assert client.post("api/studies/tiny/close", headers=headers).status_code == 403
    assert store.studies.get_study(logged_in.db, "tiny").status == "open"
    good = {"Sec-Fetch-Site": "same-origin", "Origin": logged_in.base.rstrip("/")}
    assert client.post("studies/tiny/close", data={"form_token": token}, headers=good).status_code == 303
    assert store.studies.get_study(logged_in.db, "tiny").status == "closed"


def test_researchers_cookie_is_no_session_token(logged_in):
    assert logged_in.client.get("s/tiny/session").status_code == 401


def test_api_requires_the_login(server):
    for path in (
        "me",
        "studies",
        "studies/tiny",
        "studies/tiny/sessions",
        "studies/tiny/export.zip",
        "openapi.json",
    ):
        answer = server.client.get(f"api/{path}")
        assert (answer.status_code, answer.json()["error"]) == (401, "NotAllowed")
    for path in ("close", "reopen", "links"):
        assert server.client.post(f"api/studies/tiny/{path}").status_code == 401
    assert server.client.get("api/").headers["location"] == "/login?next=%2Fapi%2F"


def test_studies_and_sessions(logged_in_on_both):
    done, left = logged_in_on_both.begin(prolific_pid="secret-pid"), logged_in_on_both.begin()
    done.post("complete", {"count": done.answer_all()})
    left.send(response(0, 0))
    left.post("leave", {"data": "keep"})
    logged_in_on_both.begin()
    client = logged_in_on_both.client
    study = client.get("api/studies").json()[0]
    assert {name: study[name] for name in ("name", "status", "frozen", "completed", "active", "left")} == {
        "name": "tiny", "status": "open", "frozen": True, "completed": 1, "active": 1, "left": 1,
    }  # fmt: skip
    assert study["link"] == f"{logged_in_on_both.base}s/tiny/"
    assert study["prolific_link"].startswith(f"{study['link']}?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}&STUDY_ID=")
    sessions = client.get("api/studies/tiny/sessions")
    assert [row["status"] for row in sessions.json()] == ["completed", "left", "active"]
    assert "secret-pid" not in sessions.text
    assert client.get("api/studies/tiny").json()["images"]["patches"]["completed"] == 1
    page = client.get("").text
    assert "A tiny study" in page
    assert "1 of 3" in page


def test_closing_and_links_in_the_api(logged_in_on_both):
    client = logged_in_on_both.client
    headers = {"X-CSRF-Token": client.get("api/me").json()["csrf_token"]}
    assert client.post("api/studies/tiny/close", headers=headers).json()["status"] == "closed"
    assert client.post("api/studies/tiny/reopen", headers=headers).json()["status"] == "open"
    links = client.post("api/studies/tiny/links?count=2", headers=headers).json()["links"]
    tokens = [link.removeprefix(f"{logged_in_on_both.base}s/tiny/?link=") for link in links]
    assert len({logged_in_on_both.begin(link=token).state["session"] for token in tokens}) == 2
    client.post("api/studies/tiny/links?count=3", headers=headers)
    assert client.delete("api/studies/tiny/links", headers=headers).json() == {"revoked": 3}
    for count in ("0", "10001", "many"):
        refused = client.post(f"api/studies/tiny/links?count={count}", headers=headers)
        assert (refused.status_code, refused.json()["error"]) == (422, "InvalidInput")
    for path in ("api/studies/nope", "api/studies/nope/sessions", "api/nope"):
        assert (client.get(path).status_code, client.get(path).json()["error"]) == (404, "NotFound")


def test_links_on_the_page(logged_in):
    page = post_form(logged_in.client, "studies/tiny/links", count="3").text
    assert len(re.findall(r"/s/tiny/\?link=[\w-]{32}", page)) == 3
    for count in ("x", "0", "10001", "9" * 30, "²"):
        assert post_form(logged_in.client, "studies/tiny/links", count=count).status_code == 422
    assert post_form(logged_in.client, "studies/tiny/explode").status_code == 404


def test_data_page_shows_the_export_command(logged_in_on_both, tmp_path):
    """A SQLite file is shown by its name; nothing of PostgreSQL's address is, since it may contain a password."""
    page = logged_in_on_both.client.get("studies/tiny/data").text
    assert "vseg export tiny --out FOLDER</code>" in page
    if logged_in_on_both.db.is_sqlite:
        assert "in the folder of vseg.db" in page
    else:
        assert "with the address of this server’s database" in page
        assert "postgresql://" not in page
    with run_server(f"sqlite:///{tmp_path}/my lab.db") as other:
        log_in(other)
        page = html.unescape(other.client.get("studies/tiny/data").text)
        assert "vseg export tiny --out FOLDER --db 'sqlite:///my lab.db'</code>" in page
        assert str(tmp_path) not in page


def test_revoking_links_on_the_page(logged_in):
    page = post_form(logged_in.client, "studies/tiny/links", count="3").text
    used, *others = re.findall(r"/s/tiny/\?link=([\w-]{32})", page)
    logged_in.begin(link=used)
    assert "Revoke 2 unused links" in logged_in.client.get("studies/tiny/data").text
    page = post_form(logged_in.client, "studies/tiny/links/revoke").text
    assert "2 personal links revoked." in page
    assert "unused link" not in page
    logged_in.begin(link=used)
    for link in others:
        refused = logged_in.client.post("s/tiny/sessions", json={"consented": True, "link": link})
        assert (refused.status_code, refused.json()["reason"]) == (409, "link")


def test_export(logged_in_on_both):
    person = logged_in_on_both.begin(prolific_pid="secret-pid")
    person.post("complete", {"count": person.answer_all()})
    answer = logged_in_on_both.client.get("api/studies/tiny/export.zip")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert "tiny/dataset_description.json" in archive.namelist()
        assert all(b"secret-pid" not in archive.read(name) for name in archive.namelist())


def test_api_page_loads_nothing_from_other_sites(logged_in):
    page = logged_in.client.get("api/").text
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert "<script>" not in page
    schema = logged_in.client.get("api/openapi.json").json()
    assert schema["servers"] == [{"url": "/api"}]
    assert "/studies/{name}/export.zip" in schema["paths"]


@pytest.mark.parametrize("strips", [True, False])
def test_behind_a_proxy_with_a_prefix(tmp_path, strips):
    """Links and cookies contain the prefix, whether or not the proxy strips it."""
    forwarded = {"X-Forwarded-Proto": "https", "Host": "lab.example.org"}
    with run_server(f"sqlite:///{tmp_path}/vseg.db", prefix="/vseg", headers=forwarded) as server:
        reached = server.base.replace("/vseg/", "/") if strips else server.base
        with httpx.Client(base_url=reached, headers=forwarded, trust_env=False, timeout=60) as client:
            assert client.get("").headers["location"] == "/vseg/login"
            login = client.get("login")
            assert 'action="/vseg/login"' in login.text
            assert 'href="/vseg/pages/researcher.css"' in login.text
            cookie = SimpleCookie(login.headers["set-cookie"])[auth.COOKIE]
            assert (cookie["path"], bool(cookie["secure"])) == ("/vseg", True)
            token = auth.create_setup_token(server.db)
            client.headers["Cookie"] = f"{auth.COOKIE}={cookie.value}"
            form = {
                "form_token": re.search(r'"([0-9a-f]{64})"', login.text)[1],
                "name": NAME,
                "password": PASSWORD,
            }
            client.post("setup", data={**form, "token": token})
            entered = client.post("login", data=form, headers={"Origin": "https://lab.example.org"})
            assert entered.headers["location"] == "/vseg/"
            cookie = SimpleCookie(entered.headers["set-cookie"])[auth.COOKIE]
            client.headers["Cookie"] = f"{auth.COOKIE}={cookie.value}"
            assert client.get("api/studies").json()[0]["link"] == "https://lab.example.org/vseg/s/tiny/"
            assert client.get("api/openapi.json").json()["servers"] == [{"url": "/vseg/api"}]
            assert client.get("s/tiny").headers["location"] == "./tiny/"
            assert client.get("s/tiny/study.json").json()["name"] == "tiny"


@pytest.mark.parametrize("prefix", ["vseg", "/a b", "/s", "/api/x", "/<b>"])
def test_invalid_prefixes(prefix):
    from vseg.server.app import check_prefix

    with pytest.raises(VsegError, match="path prefix"):
        check_prefix(prefix)


def test_reserved_paths_are_complete(tmp_path):
    from roles import list_routes
    from vseg.server.app import RESERVED_PATHS

    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        paths = {path.split("/")[1] for _, path in list_routes(db)}
    assert paths - {"", "favicon.ico"} == RESERVED_PATHS


def test_removing_a_researcher_ends_logins_tokens_and_links(on_both):
    db, client = on_both.db, on_both.client
    for name in ("Ann", "Bob/ä"):
        store.researchers.set_password(db, name, "hash")
    ann, bob = (
        {"Authorization": f"Bearer {store.tokens.create(db, name, 'x')}"} for name in ("Ann", "Bob/ä")
    )
    visitor, sign_in = auth.Visitor.new(), auth.create_sign_in_token(db, "Bob/ä")
    store.researchers.log_in(db, "Bob/ä", visitor.token, 0)
    setup = auth.create_setup_token(db)
    assert [researcher["name"] for researcher in client.get("api/researchers", headers=bob).json()] == [
        "Ann",
        "Bob/ä",
    ]
    by_token = client.delete("api/researchers", params={"name": "Bob/ä"}, headers=ann)
    assert (by_token.status_code, client.get("api/me", headers=bob).status_code) == (403, 200)
    anns = auth.Visitor.new()
    store.researchers.log_in(db, "Ann", anns.token, 0)
    login = {"Cookie": f"{auth.COOKIE}={anns.token}", "Origin": str(client.base_url).rstrip("/")}
    login["X-CSRF-Token"] = client.get("api/me", headers=login).json()["csrf_token"]
    removed = client.delete("api/researchers", params={"name": "Bob/ä"}, headers=login)
    assert (removed.status_code, removed.text) == (204, "")
    assert client.get("api/me", headers=bob).status_code == 401
    assert client.get("", headers={"Cookie": f"{auth.COOKIE}={visitor.token}"}).status_code == 303
    assert client.get(f"signin?token={sign_in}").status_code == 401
    assert client.get(f"setup?token={setup}").status_code == 401, "the removed researcher may know it"
    for name, status, reason in (("Bob/ä", 404, None), ("Ann", 409, "last")):
        refused = client.delete("api/researchers", params={"name": name}, headers=login)
        assert (refused.status_code, refused.json().get("reason")) == (status, reason)
    assert client.get("api/me", headers=ann).json()["name"] == "Ann"


def test_health_reports_the_database(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        healthy = server.client.get("health")
        assert (healthy.status_code, healthy.json()) == (200, {"status": "ok"})
        assert "set-cookie" not in healthy.headers
        with server.db.writing() as connection:
            connection.exec_driver_sql("ALTER TABLE researchers RENAME TO elsewhere")
        failing = server.client.get("health")
        assert (failing.status_code, failing.json()) == (503, {"status": "unavailable"})


def test_list_of_two_studies(tmp_path):
    other = STUDY.replace('"tiny"', '"other"').replace("A tiny study", "<b>Bold</b>")
    with run_server(f"sqlite:///{tmp_path}/vseg.db", STUDY, other) as server:
        log_in(server)
        page = server.client.get("").text
        assert "&lt;b&gt;Bold" in page
        assert page.count('class="study card"') == 2
