"""Test that tokens, passwords and Prolific IDs do not appear in logs, pages, errors or exports."""

import io
import re
import sqlite3
import zipfile
from pathlib import Path

import httpx
import pytest

from researchers import PASSWORD, form_token
from roles import PID, TINY
from servers import ParticipantClient, event, response, run_server_process
from vseg.server import auth

NAME = "Ann Lee"
WRONG = "a wrong password that nobody should see"
COMMENT = "my address is 12 Elm Street"


@pytest.fixture
def study(tmp_path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(TINY)
    return path


class Everything:
    """A user of all functions of a server process; collects its replies and all secrets."""

    def __init__(self, printed: str, url: str):
        self.printed, self.url = printed, url
        self.pages: dict[str, str] = {}
        self.secrets: dict[str, str] = {"password": PASSWORD, "wrong password": WRONG, "prolific": PID}

    def participate(self, client: httpx.Client) -> None:
        link = f"s/tiny/?PROLIFIC_PID={PID}&STUDY_ID=a-study-of-prolific&SESSION_ID=a-session-of-prolific"
        client.get(link)
        begun = client.post("s/tiny/sessions", json={"consented": True, "prolific_pid": PID})
        person = ParticipantClient(client, "tiny", begun.json())
        self.secrets["session"] = person.state["token"]
        person.send(response(0, 0), event(1, "comment", text=COMMENT))
        person.send(response(0, 0) | {"rt_ms": "fast"})
        person.post("complete", {"count": 5})
        client.get("s/tiny/session", headers={"Authorization": f"Bearer {person.state['token']}x"})
        client.post("s/tiny/records", content=b"{" * 10_000, headers=person.headers)
        self.participant = person.state["participant"]

    def research(self, client: httpx.Client, setup: str) -> None:
        self.secrets["setup"] = setup.partition("token=")[2]
        token = form_token(client.get(setup).text)
        form = {"form_token": token, "token": self.secrets["setup"], "name": NAME, "password": PASSWORD}
        assert client.post("setup", data=form).status_code == 303
        client.post(
            "login",
            data={"form_token": form_token(client.get("login").text), "name": NAME, "password": WRONG},
        )
        self.secrets["cookie"] = client.cookies[auth.COOKIE]
        page = client.get("settings")
        token = form_token(page.text)
        made = client.post("settings/tokens", data={"form_token": token, "label": "analysis"}).text
        self.secrets["script"] = re.search(r"vseg_[\w-]{20,}", made)[0]  # type: ignore[index]
        links = client.post("studies/tiny/links", data={"form_token": token, "count": "1"}).text
        self.secrets["link"] = re.search(r"\?link=([\w-]{20,})", links)[1]  # type: ignore[index]
        client.get("api/me", headers={"Authorization": f"Bearer {self.secrets['script']}"})
        for path in (
            "", "new", "settings", "studies/tiny", "studies/tiny/data", "studies/tiny/images/patches", "api/",
            f"studies/tiny/participants/{self.participant}", "api/openapi.json", "api/studies", "api/tokens",
            "api/studies/tiny/sessions", "api/studies/tiny", "api/studies/tiny/progress",
            f"api/studies/tiny/participants/{self.participant}", "api/studies/nope", "login", "nope",
            "s/tiny/study.json", "s/tiny/", "s/nope/",
        ):  # fmt: skip
            self.pages[path] = client.get(path).text
        with zipfile.ZipFile(io.BytesIO(client.get("api/studies/tiny/export.zip").content)) as exported:
            self.pages |= {
                name: exported.read(name).decode("utf-8", "replace") for name in exported.namelist()
            }


def test_no_secret_is_in_logs_or_pages(study, tmp_path):
    """The log is the standard error of the process; it contains no secret of anybody."""
    url = f"sqlite:///{tmp_path}/vseg.db"
    with run_server_process(study, "--db", url) as server:
        everything = Everything(server.printed, url)
        setup = server.link("Researcher")
        base = server.link("participants").partition("s/")[0]
        with httpx.Client(base_url=base, timeout=60, trust_env=False) as client:
            everything.participate(client)
        with httpx.Client(base_url=base, timeout=60, trust_env=False) as client:
            everything.research(client, setup.removeprefix(base))
        status, out, err = server.stop()
    assert status == 0
    for kind, secret in everything.secrets.items():
        assert len(secret) > 8
        assert secret not in out + err, f"the {kind} is in the log"
        found = [path for path, text in everything.pages.items() if secret in text]
        assert found == [], f"the {kind} is in a page or an export"
    assert "127.0.0.1" not in err
    assert COMMENT not in out + err


def test_a_server_error_logs_no_secret(study, tmp_path):
    """A traceback in the log contains lines of code, not values."""
    url = f"sqlite:///{tmp_path}/vseg.db"
    with run_server_process(study, "--db", url) as server:
        base = server.link("participants").partition("s/")[0]
        with httpx.Client(base_url=base, timeout=60, trust_env=False) as client:
            begun = client.post("s/tiny/sessions", json={"consented": True, "prolific_pid": PID}).json()
            with sqlite3.connect(tmp_path / "vseg.db") as connection:
                connection.execute("ALTER TABLE identities RENAME TO gone")
                connection.execute("ALTER TABLE responses RENAME TO gone_too")
            connection.close()
            again = client.post("s/tiny/sessions", json={"consented": True, "prolific_pid": f"{PID}2"})
            person = ParticipantClient(client, "tiny", begun)
            sent = person.send(response(0, 0), event(1, "comment", text=COMMENT))
        _, out, err = server.stop()
    assert again.status_code >= 500
    assert sent.status_code >= 500
    for answer in (again, sent):
        assert "sqlite" not in answer.text.lower()
        assert "INSERT" not in answer.text
    for secret in (PID, begun["token"], COMMENT):
        assert secret not in out + err
