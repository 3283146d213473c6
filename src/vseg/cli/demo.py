"""`vseg demo`: the whole system alive, with simulated people; `--report-only` for the report alone."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from vseg.cli import options
from vseg.cli.output import find_unused_folder, new_folder, progress_bar

DEFAULT = "vseg-demo"
OURS = {"report", "study.toml", "demo.db", "demo.db-wal", "demo.db-shm"}


def demo(
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help=f"New folder to write [default: {DEFAULT}, {DEFAULT}-2, …]."),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Write the report of two experiments and stop: no server.")
    ] = False,
    port: Annotated[str, typer.Option(metavar="NUMBER", help="The port; 0 takes a free one.")] = "0",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the dashboard, or the report, in a browser.")
    ] = True,
    seed: Annotated[str, typer.Option(metavar="NUMBER", help="Another seed, other people.")] = "0",
    force: Annotated[bool, typer.Option("--force", help="Replace the folder if it exists.")] = False,
) -> None:
    """Show the whole system alive: a study, fifteen simulated people in it, and their maps as they grow.

    A server starts with a sample study; its dashboard's and a participant's link are printed, and it runs until
    you press Ctrl+C. Take part yourself, or watch. A report of two larger experiments is one click away.

    \b
    Examples:
      vseg demo
      vseg demo --report-only --out vseg-report --no-browser
    """
    number, folder = options.whole(seed, "--seed"), out or find_unused_folder(DEFAULT)
    if report_only:
        _report(folder, number, browser, force)
    else:
        _show(folder, number, options.whole(port, "--port"), browser, force)


def _report(folder: Path, seed: int, browser: bool, force: bool) -> None:
    with new_folder(folder, force=force) as new:
        from vseg import demo

        with progress_bar("Running two experiments", demo.count_steps()) as advance:
            name = demo.run_demo(new, seed=seed, progress=advance).name
    report = (folder / name).resolve()
    typer.echo(f"Report: {report}")
    if browser:
        _open(report.as_uri())


def _show(folder: Path, seed: int, port: int, browser: bool, force: bool) -> None:
    from vseg import store
    from vseg.cli.serve import bound
    from vseg.server import demo as showing, runner
    from vseg.server.app import check_page_is_built
    from vseg.server.simulated_participants import Simulations

    check_page_is_built()
    with bound("127.0.0.1", port) as listening:
        with new_folder(folder, force=force, ours=OURS):
            pass  # what follows grows while the server runs, so the folder itself comes first
        url, simulations = f"sqlite:///{folder}/demo.db", Simulations()
        with store.open(url) as db:
            shown = showing.prepare(db, folder)
            base = f"http://127.0.0.1:{listening.getsockname()[1]}"
            _say(base, shown.sign_in, shown.password, folder)
            showing.start(simulations, shown, f"{base}/", folder, seed)
            if browser:
                _open(base + shown.sign_in)
            runner.serve(db, listening, url=url, simulations=simulations, report=folder)
    typer.echo(f"Stopped; {_left(folder)}")


def _left(folder: Path) -> str:
    if (folder / "report" / "report.html").is_file():
        return f"the study, its database and the report are in {folder}."
    return (
        f"the study and its database are in {folder}; the report was not finished, and vseg demo --report-only "
        "writes one."
    )


def _say(base: str, sign_in: str, password: str, folder: Path) -> None:
    typer.echo(f"Dashboard    {base}{sign_in}")
    typer.echo(f"             the link works once; later sign in as demo, password {password}")
    typer.echo(f"Participant  {base}/s/demo/")
    typer.echo(f"Report       {base}/report (in about a minute)")
    typer.echo(f"Fifteen simulated people are answering; everything is kept in {folder}. Stop with Ctrl+C.")


def _open(address: str) -> None:
    """Without a display, `webbrowser` may start a text browser in this very terminal."""
    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        import webbrowser

        webbrowser.open(address)
