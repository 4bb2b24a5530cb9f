"""What the user reads where MegaBlocks cannot be used."""

import importlib.util
import sys

import pytest
from expert_cases import BF16, model_of, moe_of

from moelaws.model.megablocks import backend
from moelaws.model.megablocks.backend import megablocks_obstacle

PYTHON = {"megablocks", "stk", "triton"}


@pytest.fixture
def machine(monkeypatch):
    """Sets what is installed, and whether kernels are interpreted."""

    def make(installed, interpreted=False):
        def find_spec(name):
            if name not in installed:
                return None
            return importlib.util.spec_from_loader(name, None, origin="there")

        monkeypatch.setattr(backend, "find_spec", find_spec)
        monkeypatch.setenv("TRITON_INTERPRET", "1" if interpreted else "0")

    return make


@pytest.mark.parametrize(
    ("installed", "interpreted", "mlp", "target", "words"),
    [
        (set(), True, "swiglu", ("cuda", "bf16"), ["megablocks, stk, triton", "pip install"]),
        (PYTHON - {"stk"}, False, "swiglu", ("cuda", "bf16"), ["stk not installed", "envs/"]),
        (PYTHON, False, "gelu", ("cuda", "bf16"), ["ffn.mlp is gelu", "back end torch"]),
        (PYTHON | {"grouped_gemm"}, True, "swiglu", ("cpu", "bf16"), ["GPU", "--device cuda"]),
        (PYTHON | {"grouped_gemm"}, False, "swiglu", ("cuda", "fp32"), ["grouped_gemm", "bf16"]),
    ],
)
def test_it_says_what_is_missing(machine, installed, interpreted, mlp, target, words):
    machine(installed, interpreted)
    line = megablocks_obstacle(model_of(moe_of(mlp=mlp)), *target)
    assert "\n" not in line
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("installed", "interpreted", "device", "precision"),
    [
        (PYTHON, False, "cuda", "fp32"),
        (PYTHON, True, "cpu", "fp32"),
        (PYTHON | {"grouped_gemm", "megablocks_ops"}, False, "cuda", "bf16"),
    ],
)
def test_it_says_nothing_where_it_can_be_used(machine, installed, interpreted, device, precision):
    machine(installed, interpreted)
    assert megablocks_obstacle(model_of(), device, precision) == ""


@BF16
def test_stand_ins_are_not_left_behind():
    """Others look for grouped_gemm to decide what they can do."""
    backend.load()
    assert "megablocks" in sys.modules
    for name in backend.EXTENSIONS:
        assert (name in sys.modules) == backend.installed(name)
