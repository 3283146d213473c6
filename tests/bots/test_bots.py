"""Test simulated participants against a real server: they finish, repeat flagged trials, and answer what they see."""

import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count, pairwise

import numpy as np
import pytest
from sqlalchemy import select

import vseg
from servers import STUDY, run_server
from vseg import bots, export, store
from vseg.bots.perception import Perception
from vseg.data.contours import load_contours
from vseg.errors import Conflict, InvalidInput, NotFound, VsegError
from vseg.evaluation.contours import score_contours_on_maps
from vseg.observers import LapsingObserver, ideal_observer
from vseg.store.schema import identities
from vseg.study.pictures import refine_truth

OPEN = STUDY.replace("participants = 3", "participants = 20")
WHOLE = """
name = "whole"
segments = 2
participants = 8
layout = {grid = 6}
images = [{name = "patches", colours = 3}]
design = {blocks = 5}
practice = {trials = 4}
catch = {per_block = 1}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with run_server(f"sqlite:///{tmp_path_factory.mktemp('bots')}/vseg.db", OPEN, WHOLE, HIDDEN) as running:
        yield running


HIDDEN = OPEN.replace('"tiny"', '"links"').replace(
    "segments = 2\n", "segments = 2\npersonal_links_only = true\n"
)


def test_reconstruction_recovers_the_maps_that_participants_saw(database_url, tmp_path):
    """Test server, eight participants, export, load, reconstruct: the maps differ by less than 0.1 (L1, at most 2)."""
    truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, entropy=0.15, seed=1)
    with run_server(database_url, WHOLE) as running:
        url = f"{running.base}s/whole/"
        summary = bots.run_bots(url, count=8, truth={"patches": truth}, flagged=0.05, seed=3)
        assert (summary.participants, summary.refused) == (8, 0)
        assert summary.answers == 8 * (4 + 5 * 73) + summary.flagged  # none was flagged three times
        with pytest.raises(Conflict) as full:
            bots.run_bots(url, count=1, seed=4)
        assert full.value.reason == "full"
        (tmp_path / "out").mkdir()
        export.write_dataset(running.db, store.studies.get_study(running.db, "whole"), tmp_path / "out")
    responses = vseg.load(tmp_path / "out")
    assert len(responses) == 8 * 5 * 72
    result = vseg.reconstruct(responses, segments=2, seed=0)
    assert result.maps.distance_to(truth) < 0.1


def test_flagged_trials_are_repeated_at_the_end_of_their_block(server):
    summary = bots.run_bots(f"{server.base}s/tiny", count=3, flagged=0.3, seed=1)
    assert summary.participants == 3
    assert summary.flagged > 10
    for rows in by_session(server):
        tries = Counter(row["item"] for row in rows)
        assert set(tries) == set(range(28))
        assert max(tries.values()) <= 3
        blocks = [(row["practice"], row["block"]) for row in rows]
        assert blocks == sorted(blocks, key=lambda block: (not block[0], block[1]))
        for item, often in tries.items():
            flags = [row["flags"] for row in rows if row["item"] == item]
            assert all(flags[:-1])
            assert often == len(flags)
            assert not flags[-1] or often == 3


def by_session(server) -> list[list[dict]]:
    rows = server.responses()
    return [
        [row for row in rows if row["session"] == name]
        for name in dict.fromkeys(row["session"] for row in rows)
    ]


def test_records_are_plausible_for_a_page(server):
    bots.run_bots(f"{server.base}s/tiny/", count=1, seed=2)
    rows = by_session(server)[-1]
    assert [row["seq"] for row in rows] == list(range(rows[0]["seq"], rows[0]["seq"] + len(rows)))
    for before, row in pairwise(rows):
        assert row["cue_onset_ms"] >= before["response_onset_ms"] + before["rt_ms"] - 1
        assert row["shown_at_ms"] > before["shown_at_ms"]
    assert all(abs(row["cue_ms"] - 300) < 1 and row["cue_frames"] == 18 for row in rows)
    assert 400 < np.median([row["rt_ms"] for row in rows]) < 1200
    assert all(row["key"] == ("f" if row["same"] else "j") for row in rows)


def test_the_same_seed_gives_the_same_answers(tmp_path):
    """Test that it does not depend on how many take part at the same time."""
    answers = []
    for number, at_once in enumerate((1, 8)):
        with run_server(f"sqlite:///{tmp_path}/{number}.db", OPEN) as running:
            bots.run_bots(
                f"{running.base}s/tiny/",
                count=4,
                observer="lapsing:0.5",
                flagged=0.1,
                at_once=at_once,
                seed=5,
            )
            answers.append(
                [[(row["item"], row["same"], row["rt_ms"]) for row in rows] for rows in by_session(running)]
            )
    assert answers[0] == answers[1]


def test_practice_and_catch_trials_are_answered_right(server):
    """Test that the few flat colours of the practice picture are enough; its true maps are not sent."""
    bots.run_bots(f"{server.base}s/tiny/", count=2, observer=ideal_observer, seed=6)
    study = store.studies.get_study(server.db, "tiny")
    truth = study.truth("practice")
    for row in (row for rows in by_session(server)[-2:] for row in rows if row["practice"] or row["catch"]):
        assert row["same"] == (truth.labels[row["i"]] == truth.labels[row["j"]])


def test_without_true_maps_answers_follow_the_colours(server):
    """Test that 90 % of the answers agree with the true maps of the coloured patches."""
    bots.run_bots(f"{server.base}s/tiny/", count=2, observer=ideal_observer, seed=7)
    truth = store.studies.get_study(server.db, "tiny").truth("patches")
    rows = [row for rows in by_session(server)[-2:] for row in rows if row["image"] == "patches"]
    right = [row["same"] == (truth.labels[row["i"]] == truth.labels[row["j"]]) for row in rows]
    assert np.mean(right) > 0.9


def test_true_maps_of_generated_images_come_from_the_study_file(server, tmp_path):
    """Test with a texture, whose halves do not differ in colour, so that only the true maps show them."""
    file = tmp_path / "study.toml"
    file.write_text(OPEN.replace('{name = "patches", colours = 2}', '{name = "texture", texture = "low"}'))
    maps = bots.load_true_maps(file)
    assert maps.keys() == {"texture", "practice"}
    left, right = maps["texture"].probabilities.reshape(4, 4, 2)[:, [0, -1]].swapaxes(0, 1)
    assert (left == left[0]).all()
    assert (right == 1 - left).all()
    file.write_text(OPEN)
    stored = store.studies.get_study(server.db, "tiny").truth("patches")
    assert np.array_equal(bots.load_true_maps(file)["patches"].probabilities, stored.probabilities)
    file.write_text(OPEN.replace("colours = 2", 'sample = "coffee"'))
    with pytest.raises(NotFound, match=r"No image of .* is generated by vseg"):
        bots.load_true_maps(file)


def test_participants_beyond_the_study_size_are_counted_as_refused(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as running:
        summary = bots.run_bots(f"{running.base}s/tiny/", count=5, seed=0)
    assert (summary.participants, summary.refused) == (3, 2)
    assert "3 participants gave 84 answers (0 flagged)" in str(summary)
    assert summary.reason


def test_with_a_pace_every_answer_is_sent_separately(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as running:
        bots.run_bots(f"{running.base}s/tiny/", count=1, pace=0.001, seed=0)
        received = {row["received_at_ms"] for row in running.responses()}
    assert len(received) > 10


@contextmanager
def unstable_proxy(port: int) -> Iterator[int]:
    """Forward connections to a port, but cut the first two, and each later one after some kilobytes."""
    ends: list[socket.socket] = []

    def forward(source: socket.socket, target: socket.socket, left: int) -> None:
        with suppress(OSError):
            while left > 0 and (data := source.recv(4096)):
                target.sendall(data)
                left -= len(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def listen() -> None:
        for number in count():
            with suppress(OSError):
                incoming, _ = listening.accept()
                ends.append(incoming)
                if number < 2:
                    incoming.close()
                    continue
                outgoing = socket.create_connection(("127.0.0.1", port))
                ends.append(outgoing)
                for pair in ((incoming, outgoing, 20_000), (outgoing, incoming, 60_000)):
                    threads.append(threading.Thread(target=forward, args=pair))
                    threads[-1].start()
            if done.is_set():
                return

    done, threads = threading.Event(), [threading.Thread(target=listen)]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threads[0].start()
        try:
            yield listening.getsockname()[1]
        finally:
            done.set()
            socket.create_connection(listening.getsockname()).close()
            for end in ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            for end in ends:
                end.close()


def test_broken_connections_lose_and_duplicate_nothing(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db", OPEN.partition("[prolific]")[0]) as running:
        with unstable_proxy(int(running.base.rsplit(":", 1)[1].strip("/"))) as port:
            summary = bots.run_bots(f"http://127.0.0.1:{port}/s/tiny/", count=3, at_once=2, seed=0)
        finished = [rows for rows in by_session(running) if rows[0]["status"] == "completed"]
        begun = store.sessions.list_sessions(running.db, store.studies.get_study(running.db, "tiny"))
    assert summary.participants == 3 == len(finished) == len(begun), (
        "a repeated first request must not begin a second session"
    )
    assert all([row["item"] for row in rows] == list(range(28)) for rows in finished)


def test_refusal_without_a_personal_link_has_the_servers_message(server):
    with pytest.raises(Conflict, match="personal link"):
        bots.run_bots(f"{server.base}s/links/", count=2, seed=0)


def test_a_personal_link_resumes_its_session(server):
    """Test that the link in the address identifies the participant, as on the page."""
    study = store.studies.get_study(server.db, "links")
    (link,) = store.sessions.create_links(server.db, study, 1)
    url = f"{server.base}s/links?link={link}"
    with pytest.raises(
        InvalidInput, match=r"link=…, which belongs to one participant, but 2 are to take part; let only one"
    ):
        bots.run_bots(url, count=2, seed=0)

    def interrupt(answers: int) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        bots.run_bots(url, count=1, pace=1e-6, on_stored=interrupt, seed=0)
    assert len(server.responses("links")) < 28
    assert bots.run_bots(url, count=1, seed=0).participants == 1
    assert sorted(row["item"] for row in server.responses("links")) == list(range(28)), "no item twice"
    with pytest.raises(Conflict, match="already taken part"):
        bots.run_bots(url, count=1, seed=0)


def test_prolific_parameters_are_passed_on(server):
    query = "PROLIFIC_PID=p-1&STUDY_ID=s-1&SESSION_ID=t-1&unknown=x"
    for participants, url in (
        (2, f"{server.base}s/tiny/?{query}"),
        (3, f"{server.base}s/tiny/?PROLIFIC_PID=p-1"),
    ):
        with pytest.raises(InvalidInput, match=f"PROLIFIC_PID=…, .*{participants} are to take part"):
            bots.run_bots(url, count=participants, seed=0)
    bots.run_bots(f"{server.base}s/tiny/?{query}", count=1, seed=0)
    with server.db.reading() as connection:
        identity = connection.execute(select(identities).where(identities.c.prolific_pid == "p-1")).one()
    assert (identity.prolific_study, identity.prolific_session) == ("s-1", "t-1")


def interrupt(running) -> None:
    signal.raise_signal(signal.SIGINT)


def erase(running) -> None:
    study = store.studies.get_study(running.db, "tiny")
    for row in store.sessions.list_sessions(running.db, study):
        store.sessions.erase(running.db, study, row["participant"])


@pytest.mark.parametrize(("end", "error"), [(interrupt, KeyboardInterrupt), (erase, NotFound)])
def test_an_early_end_reports_how_many_answers_are_stored(tmp_path, end, error):
    """Test Ctrl+C and an error in the middle: all sessions are erased after the first ten answers."""
    stored = []

    def count_answers(answers: int) -> None:
        stored.append(answers)
        if len(stored) == 10:
            end(running)

    with run_server(f"sqlite:///{tmp_path}/vseg.db", OPEN) as running:
        message = r"0 of 2 participants came to the end; \d+ answers are stored\."
        with pytest.raises(error, match=message):
            bots.run_bots(f"{running.base}s/tiny/", count=2, pace=1e-6, on_stored=count_answers, seed=0)
    assert 10 <= sum(stored) < 56


def test_on_stored_counts_every_answer(server):
    stored: list[int] = []
    summary = bots.run_bots(f"{server.base}s/tiny/", count=1, flagged=0.1, on_stored=stored.append, seed=3)
    assert sum(stored) == summary.answers


def test_no_server_at_the_address():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(
        VsegError, match=rf"No answer from http://127.0.0.1:{port}/s/x/ .*is vseg serve running\?"
    ):
        bots.run_bots(f"http://127.0.0.1:{port}/s/x", count=1, seed=0)


@pytest.mark.parametrize("path", ["s/none/", "", "s/tiny/study.json"])
def test_no_study_at_the_address(server, path):
    with pytest.raises(NotFound, match="There is no study at"):
        bots.run_bots(server.base + path, count=1, seed=0)


@pytest.mark.parametrize("url", ["ftp://localhost/s/x/", "", "http://"])
def test_invalid_address(url):
    with pytest.raises(InvalidInput, match="Expected a participant's address"):
        bots.run_bots(url, count=1, seed=0)


def test_true_maps_on_another_layout(server):
    truth = vseg.stimuli.random_maps(vseg.Grid(5), segments=2, seed=0)
    with pytest.raises(InvalidInput, match="the study asks about other locations"):
        bots.run_bots(f"{server.base}s/tiny/", count=1, truth=truth, seed=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0}, "count is a whole number from 1 up, got 0"),
        ({"at_once": 0}, "at_once is a whole number"),
        ({"flagged": 1.0}, "flagged is a share"),
        ({"pace": -1}, "pace is 0"),
        ({"observer": "lapsing:2"}, "An observer is ideal, lapsing:RATE"),
        ({"observer": "sleepy"}, "An observer is ideal"),
    ],
)
def test_invalid_settings(settings, message):
    with pytest.raises(InvalidInput, match=message):
        bots.run_bots("http://localhost:1/s/x/", **{"count": 1, "seed": 0, **settings})


def test_observers_by_name():
    assert bots.parse_observer("ideal") is ideal_observer
    assert bots.parse_observer("lapsing:0.2") == LapsingObserver(0.2)
    assert bots.parse_observer("random") == LapsingObserver(1.0)


def test_perception_of_a_photograph():
    """Test that P(same) is graded, and the same for every participant."""
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(vseg.stimuli.load_sample("coffee", 128)).save(file, "PNG")
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(0, 128, 50) for name in ("x1", "y1", "x2", "y2")} | {"i": None, "j": None}
    perceived = [
        Perception(ideal_observer).same_probability("coffee", file.getvalue(), columns, 3) for _ in range(2)
    ]
    assert np.array_equal(*perceived)
    assert ((perceived[0] >= 0) & (perceived[0] <= 1)).all()
    assert np.ptp(perceived[0]) > 0.5


def test_answers_follow_a_model(server):
    """Test models that segment the image into halves, as labels and as probabilities."""

    def halves(image):
        assert image.dtype == np.uint8
        return np.arange(image.shape[1])[None, :] * np.ones((image.shape[0], 1)) >= image.shape[1] / 2

    def unsure(image):
        right = 0.9 * halves(image) + 0.05
        return np.stack([right, 1 - right], axis=2)

    columns = np.arange(16) % 4 >= 2
    for model, agreement in ((halves, 1.0), (unsure, 0.6)):
        bots.run_bots(f"{server.base}s/tiny/", count=1, observer=ideal_observer, model=model, seed=8)
        rows = [row for row in by_session(server)[-1] if row["image"] == "patches" and not row["catch"]]
        assert np.mean([row["same"] == (columns[row["i"]] == columns[row["j"]]) for row in rows]) >= agreement


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda image: image[0], "The model returned uint8"),
        (lambda image: np.full((*image.shape[:2], 2), np.nan), "expected labels"),
        (lambda image: 1 / 0, "The model failed on image patches: ZeroDivisionError"),
    ],
)
def test_a_model_that_fails(server, model, message):
    with pytest.raises(InvalidInput, match=message):
        bots.run_bots(f"{server.base}s/tiny/", count=1, model=model, seed=9)


ADAPTIVE = """
name = "ada"
segments = 2
participants = 20
layout = {grid = 5}
images = [{name = "patches", colours = 2}]
design = {name = "adaptive", trials = 60, target_error = 0.02, least_trials = 30}
practice = {trials = 2}
catch = {per_block = 1}
"""


def test_participants_answer_the_pairs_that_an_adaptive_study_chooses(tmp_path):
    """Test that participants without a pace wait for the server's choices, and that flagged trials keep their pairs."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db", ADAPTIVE) as running:
        summary = bots.run_bots(f"{running.base}s/ada/", count=3, flagged=0.1, seed=1)
        rows = running.responses("ada")
    assert summary.participants == 3
    real = [row for row in rows if not (row["practice"] or row["catch"])]
    assert summary.chosen == sum(row["chosen"] for row in rows)
    sessions = {row["session"] for row in rows}
    for session in sessions:
        mine = [row for row in real if row["session"] == session]
        items = sorted({row["item"] for row in mine})
        # A pair for every three of 25 locations is fixed; the others are chosen.
        late = [row for row in mine if row["item"] in items[9:]]
        # If the server is late, the current trial and the next keep their fixed pairs: this happened in one of 36
        # sessions on a machine with four times the work it can do.
        assert np.mean([row["chosen"] for row in late]) > 0.8
        pairs = {}
        for row in mine:
            assert pairs.setdefault(row["item"], (row["i"], row["j"])) == (row["i"], row["j"])


def test_participants_draw_the_borders_of_what_they_see_if_the_study_asks_for_it(tmp_path):
    """A texture's border, on 4x4 locations, is drawn finely; patches are traced from their colours."""
    images = '{name = "patches", colours = 2}, {name = "texture", texture = "low"}'
    text = OPEN.replace('{name = "patches", colours = 2}', images).replace(
        "[prolific]", "assignment = {images = 'within'}\ncontours = {draw = true}\n[prolific]"
    )
    file = tmp_path / "study.toml"
    file.write_text(text)
    with run_server(f"sqlite:///{tmp_path}/vseg.db", text) as running:
        truth, borders = bots.load_true_maps(file), bots.load_borders(file)
        truth.pop("patches")
        borders = {"texture": borders["texture"]}
        bots.run_bots(f"{running.base}s/tiny/", count=2, truth=truth, borders=borders, seed=1)
        (tmp_path / "out").mkdir()
        study = store.studies.get_study(running.db, "tiny")
        export.write_dataset(running.db, study, tmp_path / "out")
        fine = {name: refine_truth(study.study, name, study.truth(name)) for name in ("patches", "texture")}
    drawings = load_contours(tmp_path / "out")
    assert sorted(drawing.image for drawing in drawings) == ["patches"] * 2 + ["texture"] * 2
    assert len({drawing.participant for drawing in drawings}) == 2
    for drawing in drawings:
        assert score_contours_on_maps(drawing, fine[drawing.image]).f > 0.75
    one, other = (drawing.lines[0] for drawing in drawings if drawing.image == "texture")
    assert one.tolist() != other.tolist(), "each hand has its own noise"


def test_participants_do_not_draw_if_the_study_does_not_ask_for_it(server, tmp_path):
    bots.run_bots(f"{server.base}s/tiny/", count=1, seed=8)
    (tmp_path / "out").mkdir()
    export.write_dataset(server.db, store.studies.get_study(server.db, "tiny"), tmp_path / "out")
    assert load_contours(tmp_path / "out") == []
