"""What tests share: a run's configuration, and how the command line is called."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


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


def moelaws(*words, cwd=REPOSITORY, **options):
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "moelaws.cli", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        **options,
    )
