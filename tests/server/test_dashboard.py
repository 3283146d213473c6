"""Test the dashboard over HTTP: access, forms and texts."""

import asyncio
import re
from urllib.parse import urlencode

import httpx
import pytest

from researchers import BROWSER_HEADERS, CHEAP_HASHER, NAME, PASSWORD, log_in, post_form
from servers import STUDY, event, pause, response, run_server
from vseg import store
from vseg.evaluation.contours import score_contours_on_maps
from vseg.observers import draw_contours
from vseg.server import auth, demo, participant_routes
from vseg.server.app import create_app
from vseg.server.formatting import format_minutes
from vseg.server.simulated_participants import Simulations
from vseg.study.pictures import refine_truth

PAGES = ("", "new", "studies/tiny", "studies/tiny/data", "studies/tiny/images/patches", "settings")
FORMS = (
    "studies",
    "studies/tiny/pause",
    "studies/tiny/links",
    "studies/tiny/links/revoke",
    "studies/tiny/simulate",
    "studies/tiny/participants/p-1/erase",
    "settings/password",
    "settings/tokens",
    "settings/tokens/revoke",
    "settings/researchers",
    "settings/researchers/remove",
)
NEW = STUDY.replace('"tiny"', '"fresh"').replace("A tiny study", "Fresh")


@pytest.fixture
def stranger(tmp_path):
    """Return a server on which nobody is logged in."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as running:
        yield running


@pytest.fixture
def server(stranger):
    """Return the same server with a researcher logged in."""
    log_in(stranger)
    return stranger


def test_pages_redirect_to_the_login(stranger):
    for path in (*PAGES, "studies/nope", "studies/tiny/participants/p-1"):
        login, _, query = stranger.client.get(path).headers["location"].partition("?")
        assert login == "/login", path
        assert query == (urlencode({"next": f"/{path}"}) if path else ""), "the page after the login"
    for path in ("?part=live", "studies/tiny?part=live", "studies/tiny/images/patches?part=fit"):
        assert stranger.client.get(path).status_code == 401, path


def test_forms_require_the_login_and_the_form_token(server):
    for path in FORMS:
        assert server.client.post(path, data={"count": "1"}).status_code == 403, path
    with httpx.Client(base_url=server.base, trust_env=False, timeout=60) as stranger:
        for path in FORMS:
            assert stranger.post(path).headers["location"] == "/login", path
    assert store.studies.get_study(server.db, "tiny").status == "open"


def test_every_page_works_without_scripts(server):
    name = server.complete_session()
    for path in (*PAGES, f"studies/tiny/participants/{name}"):
        page = server.client.get(path)
        assert page.status_code == 200, path
        assert "<h1" in page.text
        assert 'href="#main"' in page.text
        assert not re.search(r"<script(?![^>]* src=)|\sstyle=|\son[a-z]+=", page.text), path
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page.text.replace(server.base, "/")), path


def test_not_found_is_html_for_browsers_and_json_for_scripts(server):
    paths = (
        "foo",
        "studies/nope",
        "studies/tiny/images/nope",
        "studies/tiny/participants/nope",
        "studies/nope/data",
    )
    for path in paths:
        page = server.client.get(path, headers=BROWSER_HEADERS)
        assert page.status_code == 404
        assert "Page not found" in page.text
        assert page.headers["content-type"].startswith("text/html")
        assert f'<span class="who">{NAME}</span>' in page.text, "the menu is shown to logged-in researchers"
        assert server.client.get(path).json()["error"] == "NotFound"
    assert server.client.get("api/nope", headers=BROWSER_HEADERS).json()["error"] == "NotFound"
    assert "&lt;b&gt;" in server.client.get("studies/<b>", headers=BROWSER_HEADERS).text
    assert "<b>" not in server.client.get("studies/<b>", headers=BROWSER_HEADERS).text


def test_user_texts_are_escaped(server):
    bold = NEW.replace("Fresh", "<b>Bold</b> & co") + "# <script>alert(1)</script>"
    assert post_form(server.client, "studies", text=bold).headers["location"] == "/studies/fresh"
    for path in ("", "studies/fresh", "studies/fresh/data", "studies/fresh/images/patches"):
        page = server.client.get(path).text
        assert "&lt;b&gt;Bold&lt;/b&gt; &amp; co" in page
        assert "<b>Bold" not in page
        assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in server.client.get("studies/fresh/data").text


def test_each_starter_creates_a_study(server):
    names = re.findall(r"/new\?sample=([a-z]+)", server.client.get("new").text)
    assert len(names) == 4
    for name in names:
        text = re.search(
            r"<textarea[^>]*>(.*?)</textarea>", server.client.get(f"new?sample={name}").text, re.S
        )[1]
        made = post_form(server.client, "studies", text=text.replace("&#34;", '"').replace("&amp;", "&"))
        assert made.status_code == 303, made.text
        assert server.client.get(made.headers["location"].lstrip("/")).status_code == 200


def test_invalid_study_shows_the_error_and_keeps_the_text(server):
    wrong = NEW.replace("segments = 2", "segments = 99")
    page = post_form(server.client, "studies", text=wrong)
    assert page.status_code == 422
    assert "segments" in re.search(r'role="alert"[^>]*>(.*?)</p>', page.text, re.S)[1]
    assert "segments = 99" in page.text
    page = post_form(server.client, "studies", text=wrong.replace("participants = 3", "participants = -3"))
    message = re.search(r'role="alert"[^>]*>(.*?)</p>', page.text, re.S)[1]
    assert re.findall(r"line \d+: (\w+) should be", message) == ["segments", "participants"]
    files = NEW.replace("colours = 2", 'file = "/etc/passwd"')
    assert post_form(server.client, "studies", text=files).status_code == 422
    assert len(store.studies.list_studies(server.db)) == 1


def test_live_part_returns_304_if_unchanged(server):
    for path in ("?part=live", "studies/tiny?part=live", "studies/tiny/images/patches?part=live"):
        first = server.client.get(path)
        assert "<html" not in first.text
        assert "data-live" in first.text
        again = {"If-None-Match": first.headers["etag"]}
        assert server.client.get(path, headers=again).status_code in (
            200,
            304,
        )  # 200 if a new minute has begun
        server.begin()
        assert server.client.get(path, headers=again).status_code == 200


def test_live_part_is_sent_again_after_a_new_login(server):
    """Its forms contain the form token of the login; those of an earlier login would be rejected."""
    first = server.client.get("studies/tiny?part=live")
    assert post_form(server.client, "logout").status_code == 303
    assert post_form(server.client, "login", name=NAME, password=PASSWORD).status_code == 303
    again = {"If-None-Match": first.headers["etag"]}
    assert server.client.get("studies/tiny?part=live", headers=again).status_code == 200


def test_session_without_answers(server):
    server.begin()
    for part in ("live", "fit"):  # only the page of an image has the latter
        assert "no answer yet" in server.client.get(f"studies/tiny?part={part}").text


def test_study_without_participants(server):
    page = server.client.get("studies/tiny").text
    assert (
        "No answers yet; 200 are advised for one participant. With 200 answers, expect the mean entropy to ±0.07"
        in " ".join(page.split())
    )
    assert "expected error: 0.08 with the advised answers" in page
    assert page.count("no participants yet") == 2
    for text in ("Posterior from", "preliminary", "nothing unusual", "0 of 0", "none withdrew"):
        assert text not in page
    page = server.client.get("studies/tiny/images/patches").text.replace('<span class="term">', "")
    assert "No answers yet; 200 are advised for one participant" in " ".join(page.split())


def test_answers_are_compared_with_the_advised_number_for_each_participant(server):
    """Two participants gave the 24 answers of a session each; all of them together are not compared."""
    for _ in range(2):
        server.complete_session()
    page = " ".join(server.client.get("studies/tiny").text.split())
    assert "Per participant and image: 24 of 200 advised" in page
    assert "48 answers of 2 participants, 24 each on average; 200 are advised for one participant" in page
    assert "recommended" not in page
    page = " ".join(
        server.client.get("studies/tiny/images/patches").text.replace('<span class="term">', "").split()
    )
    assert "</b> of 2 participants, 24 each on average; 200 are advised for one participant" in page


def test_durations_are_shown_for_the_study_and_each_participant(server):
    name = server.complete_session()
    page = server.client.get("studies/tiny").text
    [trial] = re.findall(r'data-testid="trial-duration">([0-9.]+ s)<', page)
    assert re.search(r'data-testid="engaged">[0-9.]+ (s|min)<', page)
    page = server.client.get(f"studies/tiny/participants/{name}").text
    assert f'data-testid="trial-duration">{trial}<' in page
    assert re.search(r"median · 95 % interval [0-9.]+ s to [0-9.]+ s", page)


def test_image_page_offers_only_participants_with_answers(server):
    without, name = server.begin().state["participant"], server.complete_session()
    page = server.client.get("studies/tiny/images/patches").text
    assert f'<option value="{name}"' in page
    assert without not in page
    page = server.client.get(f"studies/tiny/images/patches?participant={without}").text
    assert f'<option value="{without}" selected' in page


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (0, "0 s"),
        (0.0004, "24 ms"),
        (0.002, "0.1 s"),
        (0.03, "1.8 s"),
        (0.5, "30 s"),
        (7.5, "7.5 min"),
        (90, "90 min"),
    ],
)
def test_short_durations_have_a_unit_that_shows_them(minutes, text):
    assert format_minutes(minutes) == text


def test_inactive_session_is_not_in_progress(server):
    study = store.studies.get_study(server.db, "tiny")
    store.sessions.begin(server.db, study, participant_routes.make_trial_drawer(study), now_ms=1)
    found = server.client.get("api/studies").json()[0]
    assert (found["active"], found["silent"]) == (0, 1)
    assert "0, 1 inactive" in server.client.get("").text


def test_form_with_too_many_fields_is_rejected(stranger):
    rejected = stranger.client.post("login", content="&".join(f"field{n}=1" for n in range(21)))
    assert rejected.status_code == 422
    assert "at most 20 fields" in rejected.json()["message"]


def test_too_few_answers_show_how_many_pairs_are_missing(server):
    page = server.client.get("studies/tiny/images/patches?segments=3").text
    assert "32 pairs missing" in page
    assert "segmentation.png" not in page
    block = range(2, 15)  # after two practice trials: twelve pairs and a catch trial
    server.begin().send(*(response(seq, item) for seq, item in enumerate(block)))
    page = server.client.get("studies/tiny/images/patches").text
    assert "4 pairs missing" in page
    assert "there are 12" in page


@pytest.mark.parametrize(
    "query", ["segments=1", "segments=x", "segments=99", "segments=free", "smoothness=-1", "smoothness=nan"]
)
def test_invalid_map_selections(server, query):
    page = server.client.get(f"studies/tiny/images/patches?{query}", headers=BROWSER_HEADERS)
    assert page.status_code == 422
    assert "got" in page.text


def test_pausing_closing_and_reopening(server):
    for change, status in (("pause", "paused"), ("reopen", "open"), ("close", "closed"), ("reopen", "open")):
        assert post_form(server.client, f"studies/tiny/{change}").headers["location"] == "/studies/tiny"
        assert store.studies.get_study(server.db, "tiny").status == status
        assert f'class="pill {status}"' in server.client.get("studies/tiny").text
    assert post_form(server.client, "studies/tiny/explode").status_code == 404
    assert post_form(server.client, "studies/nope/pause").status_code == 404


def test_erasing_requires_confirmation_and_is_permanent(server):
    name = server.complete_session()
    path = f"studies/tiny/participants/{name}"
    assert name in server.client.get("studies/tiny").text
    refused = post_form(server.client, f"{path}/erase")
    assert refused.status_code == 422
    assert "cannot be undone" in refused.text
    done = post_form(server.client, f"{path}/erase", confirmed="yes")
    assert "1 session, 28 answers" in done.text
    assert server.client.get(path, headers=BROWSER_HEADERS).status_code == 404
    assert name not in server.client.get("studies/tiny").text
    assert post_form(server.client, f"{path}/erase", confirmed="yes").status_code == 404
    assert server.responses() == []


def test_invalid_simulations(server):
    for fields in (
        {"count": "0"},
        {"count": "x"},
        {"count": "1", "pace": "-1"},
        {"count": "1", "source": "ghost"},
    ):
        page = post_form(server.client, "studies/tiny/simulate", **fields)
        assert page.status_code == 422
        assert "<h1>" in page.text


def test_tokens_are_shown_once_and_can_be_revoked(server):
    made = post_form(server.client, "settings/tokens", label="<i>notebook</i>").text
    token = re.search(r'value="(vseg_[\w-]+)"', made)[1]
    page = server.client.get("settings").text
    assert token not in page
    assert "&lt;i&gt;notebook" in page
    number = re.search(r'name="token" value="(\d+)"', page)[1]
    assert post_form(server.client, "settings/tokens/revoke", token=number).status_code == 303
    assert store.tokens.find_researcher(server.db, token) is None
    assert post_form(server.client, "settings/tokens", label=" ").status_code == 422
    assert post_form(server.client, "settings/tokens/revoke", token="x").status_code == 422


def test_changing_the_password(server):
    wrong = post_form(
        server.client, "settings/password", old="not this one", password="another horse battery"
    )
    assert wrong.status_code == 401
    assert "wrong" in wrong.text
    short = post_form(server.client, "settings/password", old=PASSWORD, password="short")
    assert "at least 12" in short.text
    copied = {"Cookie": f"{auth.COOKIE}={server.client.cookies[auth.COOKIE]}"}
    token = store.tokens.create(server.db, NAME, "notebook")
    changed = post_form(server.client, "settings/password", old=PASSWORD, password="another horse battery")
    assert changed.headers["location"].startswith("/settings")
    assert "Your tokens for scripts still work" in server.client.get("settings?changed=password").text
    assert store.tokens.find_researcher(server.db, token) == NAME
    again = {"old": "another horse battery", "password": PASSWORD, "revoke": "yes"}
    assert "changed=tokens" in post_form(server.client, "settings/password", **again).headers["location"]
    assert store.tokens.find_researcher(server.db, token) is None
    assert server.client.get("settings").status_code == 200
    assert httpx.get(f"{server.base}settings", headers=copied, trust_env=False, timeout=60).status_code == 303


def test_sign_in_links_work_once(stranger):
    store.researchers.set_password(stranger.db, NAME, CHEAP_HASHER.hash(PASSWORD))
    token = auth.create_sign_in_token(stranger.db, NAME)
    for _ in range(2):  # as programs that preview links do
        assert stranger.client.head(f"signin?token={token}").status_code == 401
    assert stranger.client.get(f"signin?token={token}").headers["location"] == "/"
    assert stranger.client.get("").status_code == 200
    for used in (token, "", "x"):
        page = stranger.client.get(f"signin?token={used}")
        assert page.status_code == 401
        assert "log in with your name and password" in page.text


def test_one_time_link_for_another_researcher(server):
    page = post_form(server.client, "settings/researchers").text
    link = re.search(r'value="(http[^"]*/setup\?token=[^"]+)"', page)[1]
    assert "Choose a name and a password" in httpx.get(link, trust_env=False, timeout=60).text


def test_setup_explains_existing_names_only_if_there_are_any(server):
    explanation = "If the name already exists"
    link = f"setup?token={auth.create_setup_token(server.db)}"
    assert explanation in server.client.get(link).text
    with run_server(f"sqlite:///{server.db.address}-new") as new:
        link = f"setup?token={auth.create_setup_token(new.db)}"
        assert explanation not in new.client.get(link).text


def test_removing_a_researcher_requires_confirmation(server):
    store.researchers.set_password(server.db, "Bob <b>", "hash")
    assert 'aria-label="Remove Bob &lt;b&gt;…"' in server.client.get("settings").text
    unconfirmed = post_form(server.client, "settings/researchers/remove", name="Bob <b>")
    assert (unconfirmed.status_code, "Tick the box" in unconfirmed.text) == (422, True)
    done = post_form(server.client, "settings/researchers/remove", name="Bob <b>", confirmed="yes")
    assert (done.status_code, done.headers["location"]) == (303, "/settings#researchers")
    assert "Remove" not in server.client.get("settings").text, "the last researcher cannot be removed"
    for name, status, message in ((NAME, 409, "the only researcher"), ("Bob <b>", 404, "removed before")):
        refused = post_form(server.client, "settings/researchers/remove", name=name, confirmed="yes")
        assert (refused.status_code, message in refused.text) == (status, True)
    assert [researcher.name for researcher in store.researchers.list_researchers(server.db)] == [NAME]


def test_researcher_who_removes_themselves_is_logged_out(server):
    store.researchers.set_password(server.db, "Bob", "hash")
    done = post_form(server.client, "settings/researchers/remove", name=NAME, confirmed="yes")
    assert done.headers["location"] == "/login"
    assert server.client.get("settings").status_code == 303


def test_unknown_address_sets_no_cookie_and_shows_no_menu(stranger):
    page = stranger.client.get("foo", headers=BROWSER_HEADERS)
    assert "set-cookie" not in page.headers
    assert "Log out" not in page.text


def test_favicon(stranger):
    assert stranger.client.get("favicon.ico").headers["location"] == "/pages/favicon.svg"
    assert stranger.client.get("pages/favicon.svg").headers["content-type"].startswith("image/svg")


def test_report_requires_login_and_tells_if_it_failed(tmp_path):
    """The process of the report is killed at its start, as for lack of memory."""

    async def check_report(db: store.Database) -> None:
        demo_study, simulations = demo.prepare(db, tmp_path), Simulations()
        transport = httpx.ASGITransport(create_app(db, report=tmp_path))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            assert (await client.get("/report")).headers["location"] == "/login?next=%2Freport"
            assert (await client.get(demo_study.sign_in)).status_code == 303
            pending = await client.get("/report")
            assert (pending.status_code, pending.headers["refresh"], pending.headers["retry-after"]) == (
                503,
                "5",
                "5",
            )
            assert "still being written" in pending.text
            assert 'class="alert"' not in pending.text
            simulations.stop()
            demo.start(simulations, demo_study, "http://127.0.0.1:9/", tmp_path, seed=1)
            while (answer := await client.get("/report")).status_code == 503:
                await asyncio.sleep(0.02)
            assert answer.status_code == 404
            assert "ended without one" in answer.text
            tmp_path.joinpath("report").mkdir(exist_ok=True)
            tmp_path.joinpath("report", "report.html").write_text("here it is", encoding="utf-8")
            assert (await client.get("/report")).text == "here it is"

    with store.open(f"sqlite:///{tmp_path}/demo.db") as db:
        asyncio.run(check_report(db))


def test_drawn_contours_are_scored(tmp_path):
    """Two participants draw the same border, one a corner: F is f, f and 0 against the truth, the pairs 1, 0 and 0."""
    study = STUDY.replace("[prolific]", "contours = {draw = true}\n[prolific]")
    with run_server(f"sqlite:///{tmp_path}/vseg.db", study) as server:
        log_in(server)
        row = store.studies.get_study(server.db, "tiny")
        truth = refine_truth(row.study, "patches", row.truth("patches"))
        drawing = draw_contours(truth, noise=0, seed=0)
        border, f = [line.tolist() for line in drawing.lines], score_contours_on_maps(drawing, truth).f
        assert f > 0.9
        people = [server.begin() for _ in range(3)]
        for person, lines in zip(people, (border, border, [[[0, 1], [1, 0]]]), strict=True):
            size = {"width_px": 512, "height_px": 512}
            assert (
                person.send(event(0, "contours", image="patches", contours=lines, **size)).status_code == 200
            )
        first = people[0].state["participant"]

        def read_scores(query: str) -> dict[str, str]:
            address = f"studies/tiny/images/patches?part=contours{query}"
            while "Reading the answers" in (text := server.client.get(address).text):
                pause()
            return dict(re.findall(r'data-testid="(\w+)-f">([0-9.]+)', text))

        assert read_scores("") == {"truth": f"{f:.2f}", "between": "0.00"}
        assert read_scores(f"&participant={first}") == {"truth": f"{f:.2f}", "between": "0.50"}
        page = server.client.get(f"studies/tiny/participants/{first}").text
        assert "part=contours" in page
        assert "Image with drawn contours" in page
        assert "part=contours" not in server.client.get("studies/tiny").text
        size = {"width_px": 500, "height_px": 1}  # that of no image of the study
        again = event(1, "contours", image="patches", contours=border, **size)
        people[2].send({**again, "at_ms": again["at_ms"] + 1})
        assert read_scores("")["between"] == "1.00", "of the other two, which it must not spoil"
