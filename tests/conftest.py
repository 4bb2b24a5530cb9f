"""What tests share."""

import signal

import pytest
from hypothesis import settings

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
def heard():
    """SIGINT as on a terminal: a shell starts what runs in the background with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
