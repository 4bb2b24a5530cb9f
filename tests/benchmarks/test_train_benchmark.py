"""The training benchmark runs, and its yardsticks measure what they say. No time is asserted."""

import json
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from moelaws.accounting.parameters import count_parameters
from moelaws.model.backends import BACKENDS
from repository import REPOSITORY

MODEL = {"n_layers": 2, "d_model": 16, "n_heads": 2, "context": 8, "vocab_size": 300}


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")


def test_all_parts_run_and_write_their_numbers(monkeypatch, tmp_path, capsys):
    import train

    sizes = {"WIDTHS": ((8, 4), (6, 5)), "EXPERTS": (2, 4), "LAYER": {"T": 32, "K": 2}}
    sizes |= {"MODEL": MODEL, "FFN": {"n_experts": 4, "top_k": 2, "d_expert": 8}, "BATCH": 2}
    for name, value in sizes.items():
        monkeypatch.setattr(train, name, value)
    path = tmp_path / "speed.json"
    threads = torch.get_num_threads()
    try:
        train.main(["--json", str(path), "--seconds", "0", "--processes", "1"])
    finally:
        torch.set_num_threads(threads)
    found = json.loads(path.read_text())
    assert set(found) == {"machine", "experts", "loop", "step", "start", "gpu"}
    assert len(found["experts"]["rows"]) == 4
    shares = [row["share"]["best"] for row in found["experts"]["rows"]]
    assert found["experts"]["best"] ** 4 == pytest.approx(torch.tensor(shares).prod().item())
    assert found["loop"]["stacked_best"] > 0
    assert found["step"]["d_ffn_of_the_dense_model"] == 16
    parts = found["start"]["parts"]
    assert sum(parts.values()) == pytest.approx(found["start"]["seconds"])
    assert parts["torch_imports"] > 0
    assert parts["first_step"] > 0
    if not torch.cuda.is_available():
        assert found["gpu"] == {"not_measured": "no GPU"}
        assert "GPU: not measured" in capsys.readouterr().out


def test_both_yardsticks_have_the_flops_of_the_experts():
    """18 T K D F: three matrices, forward once and backward twice, two FLOPs a multiply-add."""
    from speed.layer import draw_routings, loop, matrix_products

    T, K, D, E, width = 64, 2, 16, 4, 8
    counts = []
    a_loop = loop(draw_routings(T, E, K), D, E, width, stacked=False)
    for call in (matrix_products(T * K, D, width), a_loop):
        with FlopCounterMode(display=False) as counter:
            call()
        counts.append(counter.get_total_flops())
    assert counts == [18 * T * K * D * width] * 2


@pytest.mark.parametrize("stacked", [True, False])
def test_the_loop_computes_what_the_experts_compute(stacked):
    from speed.layer import draw_routings, layer, loop

    routings = draw_routings(64, 6, 2)
    mine = layer(routings, 8, 6, 12)()
    theirs = loop(routings, 8, 6, 12, stacked)()
    weights = theirs[2:] if stacked else (torch.stack(theirs[2:8]), torch.stack(theirs[8:]))
    theirs = (*theirs[:2], *(weight.transpose(1, 2) for weight in weights))
    torch.testing.assert_close(theirs, mine, rtol=1e-4, atol=1e-5)


def test_throughput_of_a_device_by_its_peak():
    """Utilisation is 6 N_active tokens/s over the peak; what cannot be measured says why."""
    from speed.step import configuration
    from speed.throughput import measure_throughput

    peak, batch = 1e11, 2
    rows = measure_throughput("cpu", peak, (16, 24), (8,), MODEL, batch, seconds=0)
    assert [row["d_model"] for row in rows] == [16, 24]
    for row in rows:
        step, width = row["step"]["torch"], row["d_model"]
        ffn = {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": width}
        parameters = count_parameters(
            configuration(ffn, {**MODEL, "d_model": width, "n_heads": 1}, batch).model
        )
        flops = 6 * (parameters.active - parameters.embedding - parameters.norms)
        assert step["tokens_per_second"] * step["seconds"] == pytest.approx(batch * 8)
        assert step["utilisation"] == pytest.approx(flops * step["tokens_per_second"] / peak)
        assert row["layer"]["torch"]["tokens_per_second"] > 0


def test_a_back_end_that_is_not_there_is_not_measured(monkeypatch):
    """Neither is MegaBlocks' own layer; the obstacle is told instead of a number."""
    from speed import throughput

    obstacle = "megablocks is not installed"
    megablocks = replace(BACKENDS["megablocks"], obstacle=lambda *_: obstacle)
    monkeypatch.setitem(BACKENDS, "megablocks", megablocks)
    monkeypatch.setattr(throughput, "megablocks_obstacle", lambda *_: obstacle)
    (row,) = throughput.measure_throughput("cpu", 1e11, (16,), (8,), MODEL, 2, seconds=0)
    assert "utilisation" in row["step"]["torch"]
    for part, name in (("step", "megablocks"), ("layer", "megablocks"), ("layer", throughput.OWN)):
        assert obstacle in row[part][name]["not_measured"]


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H200", 989e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA GeForce RTX 4090", None),
    ],
)
def test_peaks_of_known_devices(name, peak):
    from speed.throughput import peak_flops

    assert peak_flops(name) == peak
