"""Settings of Hypothesis (the same examples in every run, new ones with `-m chaos`), and databases to test on."""

import random
import signal
from contextlib import ExitStack

import pytest
from hypothesis import settings

settings.register_profile("vseg", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("chaos", deadline=None, max_examples=30, print_blob=True)
settings.load_profile("vseg")


def pytest_configure(config):
    """Let `make chaos` try other examples each time, from a seed that is printed: `--hypothesis-seed` repeats a run.

    This hook runs before Hypothesis reads its options and before any test is imported.
    """
    # Tests press Ctrl+C, here and in child processes, which Python leaves ignored if nohup has started it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.markexpr == "chaos":
        settings.load_profile("chaos")
        config.option.timeout = 3600
        if config.option.hypothesis_seed is None:
            config.option.hypothesis_seed = str(random.SystemRandom().getrandbits(32))


def pytest_report_header(config):
    seed = config.option.hypothesis_seed
    return None if seed is None else f"hypothesis seed: {seed} (again: --hypothesis-seed={seed})"


@pytest.fixture(scope="session")
def postgres_server():
    """Return a real PostgreSQL server, started on first use; see databases.py."""
    from databases import postgres

    with ExitStack() as stack:
        try:
            server = stack.enter_context(postgres())
        except RuntimeError as error:
            pytest.fail(str(error), pytrace=False)
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server):
    """Return the URL of a PostgreSQL database with the tables, which all tests share; see also `database_url`."""
    url = postgres_server.fresh()
    yield url
    postgres_server.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """Return the URL of an empty database for one test; each test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/vseg.db"
    else:
        with request.getfixturevalue("postgres_server").borrowed() as url:
            yield url


@pytest.fixture
def patient_server(monkeypatch):
    """Let pages and replies of a server wait for new answers, however busy the machine is.

    Otherwise they show earlier ones, or that the answers are being read.
    """
    from vseg.server.api import dependencies
    from vseg.server.dashboard import study_overview

    monkeypatch.setattr(study_overview, "READ_TIMEOUT_S", 60)
    monkeypatch.setattr(dependencies, "FIRST_READ_TIMEOUT_S", 60)
