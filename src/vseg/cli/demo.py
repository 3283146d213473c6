"""`vseg demo`: a running server with simulated participants, or with `--report-only` a report."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from vseg.cli import options
from vseg.cli.output import find_unused_folder, new_folder, progress_bar

DEFAULT_FOLDER = "vseg-demo"
DEMO_FILES = {"report", "study.toml", "demo.db", "demo.db-wal", "demo.db-shm"}


def demo(
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Only write the report of two experiments; no server.")
    ] = False,
    port: options.PortOption = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the dashboard or the report in a browser.")
    ] = True,
    seed: options.SeedOption = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help=f"New folder to write [default: {DEFAULT_FOLDER}, {DEFAULT_FOLDER}-2, …].",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace the folder if it exists.", rich_help_panel=options.OUTPUT),
    ] = False,
) -> None:
    """Run a sample study with simulated participants.

    Starts a server with a sample study in which fifteen simulated participants take part, and prints the links of the
    dashboard, where their maps can be watched, and of a participant, to take part yourself. A report of two larger
    experiments follows after about a minute. The server runs until you press Ctrl+C.

    \b
    Examples:
      vseg demo
      vseg demo --report-only --out vseg-report --no-browser
    """
    folder = out or find_unused_folder(DEFAULT_FOLDER)
    if report_only:
        _write_report(folder, seed, browser, force)
    else:
        _run_server(folder, seed, port, browser, force)


def _write_report(folder: Path, seed: int, browser: bool, force: bool) -> None:
    with new_folder(folder, force=force) as temporary:
        from vseg.demo import count_steps, run_demo

        with progress_bar("Running two experiments", count_steps()) as advance:
            name = run_demo(temporary, seed=seed, progress=advance).name
    report = (folder / name).resolve()
    typer.echo(f"Report: {report}")
    if browser:
        _open_in_browser(report.as_uri())


def _run_server(folder: Path, seed: int, port: int, browser: bool, force: bool) -> None:
    from vseg import store
    from vseg.server import demo, runner
    from vseg.server.app import check_page_is_built
    from vseg.server.simulated_participants import Simulations
    from vseg.server.sockets import get_base_url, open_socket

    check_page_is_built()
    with open_socket("127.0.0.1", port) as listening:
        with new_folder(folder, force=force, ours=DEMO_FILES):
            pass  # create the folder first: the files in it grow while the server runs
        url, simulations = f"sqlite:///{folder}/demo.db", Simulations()
        with store.open(url) as database:
            sample = demo.prepare(database, folder)
            base = get_base_url("127.0.0.1", listening)
            _print_links(base, sample.sign_in, sample.password, folder)
            demo.start(simulations, sample, f"{base}/", folder, seed)
            if browser:
                _open_in_browser(base + sample.sign_in)
            runner.serve(database, listening, url=url, simulations=simulations, report=folder)
    typer.echo(f"Stopped; {_describe_files(folder)}")


def _describe_files(folder: Path) -> str:
    if (folder / "report" / "report.html").is_file():
        return f"the study, its database and the report are in {folder}."
    return (
        f"the study and its database are in {folder}; the report was not finished: vseg demo --report-only "
        "writes one."
    )


def _print_links(base: str, sign_in: str, password: str, folder: Path) -> None:
    typer.echo(f"Dashboard    {base}{sign_in}")
    typer.echo(f"             the link works once; later sign in as demo, password {password}")
    typer.echo(f"Participant  {base}/s/demo/")
    typer.echo(f"Report       {base}/report (in about a minute)")
    typer.echo(f"Fifteen simulated participants are answering; all files are in {folder}. Stop with Ctrl+C.")


def _open_in_browser(address: str) -> None:
    """Open a browser if there is a display: otherwise `webbrowser` may start a text browser in this terminal."""
    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        import webbrowser

        webbrowser.open(address)
