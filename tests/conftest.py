"""What tests share."""

import shutil
import signal

import pytest
from hypothesis import settings

from repository import REPOSITORY

# Who runs the tests twice of the same code hears the same twice; `make explore` looks further.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", max_examples=2000)
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


@pytest.fixture
def heard():
    """SIGINT as on a terminal: a shell starts what runs in the background with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
