"""What the user reads where MegaBlocks cannot be used."""

import sys
from importlib.util import spec_from_loader

import pytest
from expert_cases import BF16, model_of, moe_of

from moelaws.model.megablocks import backend
from moelaws.model.megablocks.backend import megablocks_obstacle

PYTHON = {"megablocks", "stk", "triton"}


@pytest.mark.parametrize(
    ("installed", "interpreted", "mlp", "target", "words"),
    [
        ((), "1", "swiglu", ("cuda", "bf16"), ["megablocks, stk, triton", "pip install"]),
        (PYTHON - {"stk"}, "0", "swiglu", ("cuda", "bf16"), ["stk not installed", "envs/"]),
        (PYTHON, "0", "gelu", ("cuda", "bf16"), ["ffn.mlp is gelu", "back end torch"]),
        (PYTHON | {"grouped_gemm"}, "1", "swiglu", ("cpu", "bf16"), ["GPU", "--device cuda"]),
        (PYTHON | {"grouped_gemm"}, "0", "swiglu", ("cuda", "fp32"), ["grouped_gemm", "bf16"]),
        # Nothing is missing.
        (PYTHON, "0", "swiglu", ("cuda", "fp32"), []),
        (PYTHON, "1", "swiglu", ("cpu", "fp32"), []),
        (PYTHON | {"grouped_gemm", "megablocks_ops"}, "0", "swiglu", ("cuda", "bf16"), []),
    ],
)
def test_it_says_what_is_missing(monkeypatch, installed, interpreted, mlp, target, words):
    specs = {name: spec_from_loader(name, None, origin="there") for name in installed}
    monkeypatch.setattr(backend, "find_spec", specs.get)
    monkeypatch.setenv("TRITON_INTERPRET", interpreted)
    line = megablocks_obstacle(model_of(moe_of(mlp=mlp)), *target)
    assert bool(line) == bool(words)
    assert "\n" not in line
    for word in words:
        assert word in line


@BF16
def test_stand_ins_are_not_left_behind():
    """Others look for grouped_gemm to decide what they can do."""
    backend.load()
    assert "megablocks" in sys.modules
    for name in backend.EXTENSIONS:
        assert (name in sys.modules) == backend.installed(name)
