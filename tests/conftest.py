"""What tests share."""

import fcntl
import os
import shutil
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from repository import REPOSITORY
from sweep_copy import Copy

os.environ.pop("COLUMNS", None)  # pytest-xdist gives its workers 80, as if a terminal read them

# As a run's own default, before torch is loaded: small matrices' threads only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Images for containers forbid Python to keep what it compiles. Tests start hundreds of processes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Who runs the tests twice of the same code hears the same twice; `make explore` looks further.
# No test is about time: a busy machine draws and runs examples slowly.
patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, max_examples=40, **patient)
settings.register_profile("explore", max_examples=2000, **patient)
settings.load_profile("repeatable")


@pytest.fixture
def run_data():
    """A small valid RunConfig as plain data."""
    return {
        "model": {
            "n_layers": 2, "d_model": 32, "n_heads": 2, "n_kv": 2, "context": 64,
            "vocab_size": 300,
            "ffn": {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 32},
        },
        "corpus": {"source": {"digest": "0" * 64}, "vocab_size": 300},
        "steps": 10,
        "batch": 4,
        "balance_group": 4,
        "optimizer": {"lr": 3e-3},
    }  # fmt: skip


@pytest.fixture
def project_folder(tmp_path, monkeypatch):
    """The current folder: nothing but a copy of the repository's configuration."""
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ended(monkeypatch, capsys):
    """Runs the command line as a shell does: (exit code, standard output, standard error)."""
    from moelaws.cli import main

    def run(*words):
        monkeypatch.setattr("sys.argv", ["moelaws", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture(autouse=True)
def heard():
    """SIGINT as on a terminal: a shell starts what runs in the background with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def searched(tmp_path_factory):
    """The study of hyperparameters at its demo, which tests leave as it is."""
    from hyperparameters_case import DEMO, table, write_case

    return write_case(tmp_path_factory.mktemp("searched"), table("demo", DEMO))


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A copy of the repository in which everything was run once. Tests leave it as they found it.

    One of pytest-xdist's processes runs it, and each takes a copy.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    made, shown = folder / "finished", folder / "finished.txt"
    with (folder / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shown.exists():
            shutil.rmtree(made, ignore_errors=True)  # where another process failed
            shown.write_text(Copy.of_repository(made).snakemake().stderr)
    copy = Copy(shutil.copytree(made, tmp_path_factory.mktemp("copy") / "finished", symlinks=True))
    copy.shown = shown.read_text()
    return copy
