"""Texts that would be scripts, in a real Chromium: whoever wrote them and wherever they appear, nothing runs.

The policy would stop them too, and says so on the console: that nothing is said there shows that they are text already.
"""

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page

from browsers import launched
from roles import TINY
from servers import RunningServer, event, response, run_server
from vseg import store
from vseg.server import auth

pytestmark = pytest.mark.usefixtures("patient_server")
RUN = "window.ran=(window.ran||0)+1"
PAYLOADS = (
    f"<script>{RUN}</script>",
    f"\"><img src=x onerror='{RUN}'>",
    f"' onmouseover='{RUN}' autofocus onfocus='{RUN}' x='",
    f"</textarea></title></script><svg onload='{RUN}'>",
    f"javascript:{RUN}",
    "{{constructor.constructor('" + RUN + "')()}}",
)
ALL = " ".join(PAYLOADS)
IN_TOML = " ".join(PAYLOADS[:5]).replace("'", "`")  # texts of a study may not contain braces
STUDY = TINY.replace('"A tiny study"', f"'''{IN_TOML[:200]}'''") + "\n".join(
    ["[texts]", *(f"{key} = '''{IN_TOML}'''" for key in ("title", "consent", "consent_agree"))]
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[RunningServer]:
    with run_server(f"sqlite:///{tmp_path_factory.mktemp('scripts')}/vseg.db", STUDY) as running:
        for name in ("Ann", PAYLOADS[0], PAYLOADS[1]):
            store.researchers.set_password(running.db, name, "never used")
        for payload in PAYLOADS:
            store.tokens.create(running.db, "Ann", payload[:64])
        person = running.begin()
        lines = [[[1, 2], [3, 4]], [[payload, payload] for payload in PAYLOADS], ALL, {ALL: ALL}]
        for seq, record in enumerate(
            [
                event(0, "comment", text=ALL, **{ALL: ALL}),
                event(1, "device", browser=ALL, **{ALL: ALL}),
                event(2, "contours", image="patches", width_px=10, height_px=10, contours=lines),
                event(3, "contours", image=ALL, width_px=ALL, height_px=ALL, contours=ALL),
                event(4, "gamma", gamma=ALL),
                response(5, 0, key="<b>"),
            ]
        ):
            assert person.send(record | {"seq": seq}).status_code == 200
        running.participant = person.state["participant"]  # type: ignore[attr-defined]
        yield running


@pytest.fixture
def page(browser: Browser, server: RunningServer) -> Iterator[Page]:
    """Open a page with Ann logged in; fail the test if any injected script ran or was blocked."""
    context = browser.new_context()
    opened = context.new_page()
    stopped: list[str] = []
    opened.on("console", lambda said: stopped.append(said.text) if "Content Security" in said.text else None)
    opened.on("dialog", lambda dialog: (stopped.append(dialog.message), dialog.dismiss()))
    opened.goto(f"{server.base}signin?token={auth.create_sign_in_token(server.db, 'Ann')}")
    yield opened
    assert stopped == []
    context.close()


def looked_at(page: Page, url: str) -> str:
    """Load a page, move the mouse over it, and check that no injected script ran."""
    page.goto(url)
    page.mouse.move(200, 200)
    page.mouse.move(400, 300)
    page.keyboard.press("Tab")
    assert page.evaluate("window.ran") is None, url
    assert (
        page.evaluate("document.querySelectorAll('[onerror],[onload],[onfocus],[onmouseover]').length") == 0
    ), url
    return str(page.content())


def test_texts_of_studies_participants_and_researchers(page, server):
    """Check every page of the dashboard."""
    for path in (
        "", "settings", "new", "studies/tiny", "studies/tiny/data", "studies/tiny/images/patches",
        f"studies/tiny/participants/{server.participant}", "api/",
    ):  # fmt: skip
        content = looked_at(page, server.base + path)
        assert "<main" in content, path
        assert "Something went wrong" not in content, path
    assert "&lt;script&gt;" in looked_at(page, f"{server.base}studies/tiny")


def test_texts_of_the_study_on_the_participants_page(page, server):
    """Texts are inserted as text, so the payload is visible."""
    page.goto(f"{server.base}s/tiny/")
    page.wait_for_selector("body[data-step=consent]", timeout=60_000)
    assert f"<script>{RUN}</script>" in page.inner_text("body")
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize(
    "payload", [PAYLOADS[0], PAYLOADS[1], PAYLOADS[4]], ids=["element", "attribute", "address"]
)
def test_addresses(page, server, payload):
    """Put payloads in every part of a URL that a page shows or uses."""
    text = quote(payload, safe="")
    for path in (
        f"s/{text}/", f"s/tiny/?PROLIFIC_PID={text}&link={text}#{text}", f"login?next={text}",
        f"studies/{text}", f"studies/tiny?image={text}&show={text}&page={text}", f"setup?token={text}",
        f"studies/tiny/images/{text}", f"studies/tiny/images/patches?participant={text}",
        f"studies/tiny/images/patches?segments={text}", f"studies/tiny/images/patches?smoothness={text}",
        f"studies/tiny/participants/{text}", f"new?sample={text}", f"signin?token={text}&next={text}", text,
    ):  # fmt: skip
        looked_at(page, server.base + path)


@pytest.mark.parametrize(
    "wanted", ["javascript:alert(1)", "//evil.example/", "https://evil.example/", "/\\evil.example/"]
)
def test_a_login_does_not_redirect_to_other_sites(page, server, wanted):
    page.goto(
        f"{server.base}signin?token={auth.create_sign_in_token(server.db, 'Ann')}&next={quote(wanted, safe='')}"
    )
    assert page.url == server.base
