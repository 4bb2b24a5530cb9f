"""A step hands the device its work and reads nothing back: on a GPU each reading makes the host
wait, and the GPU then waits for the host."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

READS_BACK = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class NothingReadBack(TorchDispatchMode):
    """Refuses operations whose result, or its shape, the host must know: item, nonzero, ..."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not READS_BACK & set(func.tags), f"{func} makes the host wait for the device"
        return func(*args, **(kwargs or {}))


MOE = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8}


@pytest.mark.parametrize(
    "ffn",
    [{**MOE, "jitter": 0.1, "router_z": 0.1, "n_shared": 1}, {**MOE, "mlp": "gelu"},
     {**MOE, "gate": "sigmoid", "balance": "bias", "capacity_factor": 1.0},
     {"kind": "dense", "d_ffn": 16}],
    ids=["moe", "gelu", "bias and capacity", "dense"],
)  # fmt: skip
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_step_reads_nothing_back(configure, trainer_of, ffn, precision):
    """All steps but those between which the measurements are fetched; windows of the load end."""
    config = configure(ffn, steps=3, batch=8, balance_group=2, precision=precision)
    trainer = trainer_of(config, micro_batch=4)
    with NothingReadBack():
        for _ in range(config.steps):
            trainer.train_step()
    trainer.history.settle()
    assert trainer.history.loss() < 10
