"""What training does on a GPU is what it does on a CPU. Where there is no GPU the same tests run on
the CPU, for a typo to be found; those that only a GPU can fail are skipped then."""

import numpy as np
import pytest
import torch

from calls import Calls, Made
from moelaws.model.backends import BACKENDS
from moelaws.model.mlp import weight_shapes
from moelaws.model.transformer import Transformer
from moelaws.spec.run import RunConfig
from moelaws.training import checkpoint
from moelaws.training.device import Upload, compute_deterministically
from moelaws.training.loop import Trainer, halved

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GPU = pytest.mark.skipif(DEVICE == "cpu", reason="no GPU")
# Without one they compare the CPU with itself.
pytestmark = pytest.mark.slow if DEVICE == "cpu" else []
KINDS = {
    "swiglu": {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 24, "router_z": 0.01},
    "gelu": {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 24, "mlp": "gelu"},
    "shared": {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 24, "n_shared": 1},
    "dense": {"kind": "dense", "d_ffn": 48},
    "biased": {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 24, "gate": "sigmoid",
               "balance": "bias", "route_scale": 2.0},
    "dropping": {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 24,
                 "capacity_factor": 1.0},
}  # fmt: skip
MUON = {"kind": "muon"}
STEPS = 4


def trainer_of(kind, device=DEVICE, precision="fp32", micro_batch=None, optimizer=None, **keywords):
    model = {"n_layers": 2, "d_model": 32, "n_heads": 2, "n_kv": 1, "context": 32,
             "vocab_size": 300, "init_std": 0.1, "qk_norm": True, "ffn": KINDS[kind]}  # fmt: skip
    corpus = {"source": {"digest": "0" * 64}, "vocab_size": 300}
    config = RunConfig.model_validate(
        {"model": model, "corpus": corpus, "steps": STEPS, "batch": 8, "balance_group": 2,
         "optimizer": {"lr": 1e-2, **(optimizer or {})}, "precision": precision}
    )  # fmt: skip
    built = Transformer(config.model, 0, precision=precision).to(device)
    return Trainer(config, built, Made(config), micro_batch, **keywords)


def rows(trainer):
    """Losses and norms of each step, without wall time."""
    assert trainer.run()
    return torch.tensor(trainer.history.rows)[:, :-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-3), ("bf16", 3e-2)])
def test_it_trains_as_on_the_cpu(kind, precision, tolerance):
    here, there = (trainer_of(kind, device, precision) for device in (DEVICE, "cpu"))
    torch.testing.assert_close(rows(here), rows(there), rtol=tolerance, atol=tolerance)
    windows = zip(here.expert_load.windows, there.expert_load.windows, strict=True)
    for counts, expected in windows:
        near_ties = 0.05 if precision == "fp32" else 0.1
        assert (counts.cpu() - expected).abs().sum() <= near_ties * expected.sum()


def test_muon_trains_as_on_the_cpu():
    """There it computes the orthogonal directions in fp32, here in bf16."""
    here, there = (trainer_of("shared", device, optimizer=MUON) for device in (DEVICE, "cpu"))
    torch.testing.assert_close(rows(here), rows(there), rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_deterministic_run_has_the_same_bits_again(precision):
    compute_deterministically()
    try:
        first, again = (rows(trainer_of("shared", precision=precision)) for _ in range(2))
    finally:
        torch.use_deterministic_algorithms(False)
        torch.backends.cuda.enable_mem_efficient_sdp(True)
        torch.backends.cuda.enable_cudnn_sdp(True)
    assert torch.equal(first, again)


@pytest.mark.parametrize("micro_batch", [2, 4])
def test_micro_batches_change_no_more_than_rounding(micro_batch):
    whole, parts = trainer_of("shared"), trainer_of("shared", micro_batch=micro_batch)
    torch.testing.assert_close(rows(parts), rows(whole), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "optimizer"), [("swiglu", None), ("biased", None), ("swiglu", MUON)]
)
def test_a_state_goes_on(tmp_path, kind, optimizer):
    whole, first, second = (trainer_of(kind, optimizer=optimizer) for _ in range(3))
    expected = rows(whole)
    first.train_step()
    first.train_step()
    path = tmp_path / "latest.json"
    checkpoint.save(path, {}, first.state())
    second.restore(checkpoint.load(path, {})[0])
    torch.testing.assert_close(rows(second), expected, rtol=1e-4, atol=1e-5)


def test_batches_arrive_whole():
    upload, g = Upload(torch.device(DEVICE)), np.random.default_rng(0)
    batches = [g.integers(1000, size=(8, 1025)) for _ in range(50)]
    summed = [upload(batch).sum() for batch in batches]  # while later ones are on their way
    assert [int(total) for total in summed] == [int(batch.sum()) for batch in batches]


@GPU
@pytest.mark.parametrize("optimizer", [None, MUON], ids=["adamw", "muon"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_in_bf16_does_not_wait_for_the_gpu(kind, optimizer):
    trainer = trainer_of(kind, precision="bf16", micro_batch=4, optimizer=optimizer)
    trainer.train_step()  # what is set up once may wait
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        trainer.train_step()
    finally:
        torch.cuda.set_sync_debug_mode(before)
    assert trainer.step == 2


@GPU
def test_lack_of_memory_halves_the_micro_batch(monkeypatch):
    """Memory that another tensor holds until the batch is halved."""
    tried, held = [], []

    def give_way(trainer):
        tried.append(trainer.micro_batch)
        held.clear()

    trainer = trainer_of("swiglu", callbacks=[Calls(after_lack=give_way)])
    losses, calls = trainer.model.losses, []

    def hungry(*words):
        if not calls:
            calls.append(words)
            while True:  # until the GPU has no more
                held.append(torch.empty(1 << 30, dtype=torch.uint8, device=DEVICE))
        return losses(*words)

    monkeypatch.setattr(trainer.model, "losses", hungry)
    trainer.train_step()
    assert tried == [halved(8, 2)]
    assert trainer.micro_batch == 4


@GPU
@pytest.mark.parametrize("kind", KINDS)
def test_a_recorded_step_is_the_step(kind):
    recorded, alone = (trainer_of(kind, precision="bf16", micro_batch=4) for _ in range(2))
    alone.recorder.can_record = False
    for _ in range(STEPS):
        recorded.train_step()
        alone.train_step()
    assert recorded.recorder.graph is not None
    for trainer in (recorded, alone):
        trainer.history.settle()
    got, expected = (torch.tensor(t.history.rows)[:, :-1] for t in (recorded, alone))
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)
    windows = zip(recorded.expert_load.windows, alone.expert_load.windows, strict=True)
    for counts, of_alone in windows:
        assert counts.sum() == of_alone.sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mlp", ["swiglu", "gelu"])
def test_experts_without_tokens_have_exact_zeros_for_gradients(mlp, dtype):
    """Memory that was freed with NaN in it must not show through."""
    T, D, E, F = 64, 32, 8, 24
    shapes = weight_shapes(mlp, E, D, F).values()
    weights = [torch.randn(shape, device=DEVICE, dtype=dtype) for shape in shapes]
    x = torch.randn(T, D, device=DEVICE, dtype=dtype)
    for tensor in (x, *weights):
        tensor.requires_grad_()
    experts = torch.tensor([[1, 5]], device=DEVICE).expand(T, 2)
    poison = [torch.full((E * D * 2 * F * 4,), float("nan"), device=DEVICE) for _ in range(20)]
    del poison
    y = BACKENDS["torch"].functions[mlp](x, experts, torch.rand(T, 2, device=DEVICE), *weights)
    y.sum().backward()
    empty = [0, 2, 3, 4, 6, 7]
    assert x.grad.isfinite().all()
    for weight in weights:
        assert weight.grad.isfinite().all()
        assert not weight.grad[empty].any()
        assert weight.grad[[1, 5]].any()
