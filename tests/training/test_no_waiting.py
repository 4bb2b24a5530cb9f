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


@pytest.mark.parametrize("micro_batch", [2, 4, 8])
def test_weights_are_cast_once_a_step(configure, trainer_of, monkeypatch, micro_batch):
    """However many micro-batches there are, and with the same gradients bit for bit."""
    config = configure(MOE, steps=1, batch=8, balance_group=2, precision="bf16")
    tokens = torch.from_numpy(trainer_of(config).data.next())

    def gradients():
        trainer = trainer_of(config, micro_batch)
        to, cast = torch.Tensor.to, []

        def noting(tensor, *words, **keywords):
            if isinstance(tensor, torch.nn.Parameter) and words == (torch.bfloat16,):
                cast.append(tensor)
            return to(tensor, *words, **keywords)

        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "to", noting)
            trainer._gradients(tokens)
        return [p.grad for p in trainer.model.parameters()], len(cast), trainer

    once, casts, trainer = gradients()
    matrices = [p for name, p in trainer.model.named_parameters() if cast_at_use(name)]
    assert casts == len(matrices)
    monkeypatch.setattr("moelaws.model.casting.cast", lambda weight, dtype: weight.to(dtype))
    for module in ("attention", "experts", "mlp", "transformer"):
        monkeypatch.setattr(f"moelaws.model.{module}.cast", lambda weight, dtype: weight.to(dtype))
    each_time, many, _ = gradients()
    assert many == casts * (8 // micro_batch)
    for gradient, same in zip(once, each_time, strict=True):
        assert torch.equal(gradient, same)


def cast_at_use(name):
    """All weights but the router's, gains, and the embedding, which is looked up in fp32."""
    return not any(word in name for word in ("router", "gain")) and name != "embedding"
