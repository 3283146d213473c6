"""Settings of Hypothesis (the same examples in every run, new ones with `-m chaos`), and databases to test on."""

import random
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

LONG_FILES = (
    "test_docs.py", "browser/test_nothing_lost.py", "browser/test_dashboard.py", "workflows/test_fit_dataset.py",
    "test_front_door.py", "server/test_simulated_participants.py", "cli/test_models.py", "cli/test_commands.py",
    "server/test_pair_scheduler.py", "robustness/test_routes.py", "robustness/test_fits.py", "demo/test_demo.py",
    "browser/test_session_variants.py", "browser/test_whole_session.py", "browser/test_entry.py",
    "browser/test_adaptive.py", "browser/test_lab.py", "browser/test_preview.py", "chaos/test_short.py",
    "workflows/test_compare_groups.py", "evaluation/test_submissions.py", "server/test_serving.py",
    "server/test_extremes.py", "bayes/test_nuts.py", "bayes/test_joint_sampling.py", "robustness/test_invariance.py",
    "reproduction/annotators/test_trials_needed.py", "reproduction/annotators/test_study.py", "cli/test_plan.py",
)  # fmt: skip
"""The files that take longest, in about this order, below the folder of this file."""

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


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest: if a process began one of them last, the others would wait for it."""
    folder, order = Path(__file__).parent, {name: number for number, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: order.get(item.path.relative_to(folder).as_posix(), len(order)))


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
    """Let a server in this process do the same however busy the machine is.

    Pages and replies wait for new answers instead of showing earlier ones, or that they are being read. Adaptive pairs
    are chosen a few trials ahead; if choosing takes long, a server otherwise chooses for the whole session at once.
    """
    from vseg.server import pair_scheduler
    from vseg.server.api import dependencies
    from vseg.server.dashboard import study_overview

    monkeypatch.setattr(study_overview, "READ_TIMEOUT_S", 60)
    monkeypatch.setattr(dependencies, "FIRST_READ_TIMEOUT_S", 60)
    monkeypatch.setattr(pair_scheduler, "MAX_MARGIN", pair_scheduler.MIN_MARGIN)
