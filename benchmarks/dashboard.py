"""Time the researcher's pages and API with a million stored responses, and the computation of new maps.

`python benchmarks/dashboard.py [--quick]` runs it by itself.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from exporting import STUDY, fill
from tables import table

TIMES, QUICK_TIMES = 30, 5
PAGES = {
    "studies": "",
    "one study": "studies/many",
    "one study, live part": "studies/many?part=live",
    "one image": "studies/many/images/patches",
    "one image, live part": "studies/many/images/patches?part=live",
    "one participant": "studies/many/participants/p000000001",
    "data": "studies/many/data",
    "settings": "settings",
}
ROUTES = {
    "studies": "api/studies",
    "one study": "api/studies/many",
    "sessions": "api/studies/many/sessions",
    "progress and participants": "api/studies/many/progress",
    "one participant": "api/studies/many/participants/p000000001",
    "preview": "api/studies/many/preview",
    "maps.json": "api/studies/many/images/patches/maps.json?segments=3",
    "maps.npz": "api/studies/many/images/patches/maps.npz?segments=3",
    "segmentation.png": "api/studies/many/images/patches/segmentation.png?segments=3",
    "entropy.png": "api/studies/many/images/patches/entropy.png?segments=3",
    "one participant's map": "api/studies/many/images/patches/entropy.png?segments=2&participant=p000000001",
    "contours.json": "api/studies/many/images/patches/contours.json",
}
# Participants answer 960 distinct pairs of 256 locations, enough for up to four segments.
NEW_MAPS = [
    ("3", "auto"),
    ("2", "auto"),
    ("4", "auto"),
    ("3", "0"),
    ("3", "1"),
    ("3", "30"),
    ("4", "0.1"),
    ("2", "5"),
]


def main(quick: bool = False) -> str:
    responses, times = (50_000, QUICK_TIMES) if quick else (1_000_000, TIMES)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/many.db"
        fill(url, responses)
        with _served(url, Path(folder)) as client:
            first = _first_read(client)
            maps = [_timed(client, _maps(*which), 1) for which in NEW_MAPS]
            answered = {("page", name): _timed(client, path, times) for name, path in PAGES.items()}
            answered |= {("API", name): _timed(client, path, times) for name, path in ROUTES.items()}
            answered["API", "progress, right after an answer"] = _while_answering(client, times)
    rows = [[kind, name, _ms(found), f"{max(found):.0f}", "300"] for (kind, name), found in answered.items()]
    rows.append(
        [
            "API",
            "a map for a new K or smoothness",
            _ms([each[0] for each in maps[1:]]),
            _worst(maps[1:]),
            "1000",
        ]
    )
    rows.append(["API", "the first map after the start", f"{maps[0][0]:.0f}", f"{maps[0][0]:.0f}", ""])
    note = (
        f"{responses} responses of {responses // 1000} participants in SQLite, N = 16, one worker, client and "
        "server on "
        f"one machine; {times} requests each. The first read after the start took {first:.1f} s in the background."
    )
    return table("The dashboard", ["", "request", "median ms", "worst ms", "target, under"], rows, note)


@contextmanager
def _served(url: str, folder: Path) -> Iterator[httpx.Client]:
    """Run `vseg serve` and yield a client that is logged in."""
    from vseg import store
    from vseg.server import auth

    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    with store.open(url) as db:
        auth.set_password(db, "bench", "a long password for nobody")
        token = auth.create_sign_in_token(db, "bench")
    command = [sys.executable, "-u", "-m", "vseg", "serve", str(study), "--db", url, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            base = _address(server)
            with httpx.Client(base_url=base, timeout=120, trust_env=False) as client:
                assert client.get(f"signin?token={token}").status_code == 303
                yield client
        finally:
            server.terminate()


def _address(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    base = ""
    for line in server.stdout:
        base = next((word.partition("/s/")[0] for word in line.split() if "/s/many/" in word), base)
        if "Stop with" in line:
            break
    return f"{base}/"


def _first_read(client: httpx.Client) -> float:
    began = time.perf_counter()
    while client.get("api/studies/many/progress").status_code == 503:
        pass
    return time.perf_counter() - began


def _timed(client: httpx.Client, path: str, times: int) -> list[float]:
    """Return the milliseconds of each request."""
    return [_once(client, path) for _ in range(times)]


def _once(client: httpx.Client, path: str) -> float:
    began = time.perf_counter()
    answer = client.get(path)
    took = 1000 * (time.perf_counter() - began)
    assert answer.status_code == 200, (path, answer.status_code, answer.text[:500])
    return took


def _while_answering(client: httpx.Client, times: int) -> list[float]:
    """Time the progress request after each new answer, so that its cache is never valid."""
    begun = client.post("s/many/sessions", json={"consented": True}).json()
    headers, found = {"Authorization": f"Bearer {begun['token']}"}, []
    for seq in range(times):
        record = _response(seq)
        stored = client.post("s/many/records", json={"records": [record]}, headers=headers)
        assert stored.status_code == 200, stored.text
        found.append(_once(client, "api/studies/many/progress"))
    return found


def _response(seq: int) -> dict:
    now = time.time_ns() // 1_000_000
    return {
        "seq": seq, "kind": "response", "item": seq, "same": seq % 2 == 0, "rt_ms": 512.5, "key": "f",
        "shown_at_ms": now, "cue_onset_ms": 0.0, "cue_asked_ms": 300, "cue_ms": 300.0, "cue_frames": 18,
        "image_onset_ms": 300.0, "image_asked_ms": 300, "image_ms": 300.0, "image_frames": 18,
        "response_onset_ms": 600.0, "frames_dropped": 0, "longest_gap_ms": 16.7, "refresh_hz": 60.0,
        "visible": True, "focused": True, "full_screen": True, "flags": "",
    }  # fmt: skip


def _maps(segments: str, smoothness: str) -> str:
    return f"api/studies/many/images/patches/maps.json?segments={segments}&smoothness={smoothness}"


def _ms(found: list[float]) -> str:
    return f"{statistics.median(found):.0f}"


def _worst(found: list[list[float]]) -> str:
    return f"{max(each[0] for each in found):.0f}"


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
