"""Every part of ``make gpu`` in small on the CPU, so that nothing fails for a typo on the day."""

import ast
import re
import sys

import pytest

from moelaws.files.atomic import read_json
from repository import REPOSITORY

BENCHMARKS = REPOSITORY / "benchmarks"


@pytest.fixture
def on_gpu(monkeypatch):
    """The command's module, which is no package's."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import on_gpu

    return on_gpu


def call(on_gpu, out, *parts):
    words = ["--device", "cpu", "--small", "--out", str(out), "--wheels", str(out / "none")]
    return on_gpu.main([*words, "--parts", *parts])


def items_of(out, part):
    content = read_json(out / "all.json")[part]
    assert content["left"] == []
    assert content["machine"]["device"] == "cpu"
    assert not [item for item in content["items"].values() if "failed" in item]
    return content["items"]


@pytest.mark.slow
def test_accuracy_speed_and_hours(on_gpu, tmp_path):
    assert call(on_gpu, tmp_path, "accuracy", "speed", "profile", "tier") == 0
    accuracy = items_of(tmp_path, "accuracy")
    assert max(accuracy["torch fp32"]["errors"].values()) < 1e-5
    assert max(accuracy["torch bf16"]["errors"].values()) > 1e-4  # it is bf16 that was measured
    (size,) = items_of(tmp_path, "speed").values()
    for row in (size["step"]["torch"], size["step"]["dense"], size["layer"]["torch"]):
        assert row["tokens_per_second"] == size["tokens"] / row["seconds"] > 0
    (row,) = items_of(tmp_path, "tier").values()
    assert row["hours"] > row["seconds_per_step"] * row["runs"] / 3600 > 0
    row, _ = items_of(tmp_path, "profile").values()  # by AdamW, and by Muon
    assert sum(row["kinds"].values()) == pytest.approx(row["milliseconds"])
    assert row["step_milliseconds"] > 0
    assert not list(tmp_path.glob("*/"))  # nothing but results lies here


@pytest.mark.slow
@pytest.mark.parametrize("part", ["tests", "resume", "packing"])
def test_parts_that_start_processes(on_gpu, tmp_path, part):
    assert call(on_gpu, tmp_path, part) == 0
    row, *_ = items_of(tmp_path, part).values()
    if part == "tests":
        assert row["tests"] > 10
        assert row["failures"] == row["errors"] == 0
    elif part == "resume":
        assert row["killed_is_bit_for_bit"]  # on a CPU that is promised
        assert row["two_alone_are_bit_for_bit"]
        assert row["resumed"].startswith("resumed at step 20/40")
    else:
        (run,) = row["runs"]
        assert row["tokens_per_second"] == run["tokens"] / run["seconds"] > 0


def test_all_that_training_imports_is_known_to_be_needed_and_is_carried(on_gpu):
    from gpu import needs

    packages = ("spec", "records", "corpus", "model", "training", "accounting", "grids")
    imported = set()
    for file in (path for p in packages for path in (REPOSITORY / "src/moelaws" / p).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.partition(".")[0])
    third_party = imported - sys.stdlib_module_names - {"moelaws"}
    assert {"torch", "safetensors"} <= third_party
    assert third_party <= needs.NEEDED.keys() | needs.OPTIONAL
    carried = re.search(r"^GPU_PACKAGES \?= (.*)", (REPOSITORY / "Makefile").read_text(), re.M)[1]
    # A machine with torch has the others.
    assert set(needs.NEEDED.values()) - set(carried.split("|")) == {
        "torch", "numpy", "pyyaml", "pyarrow", "tokenizers", "safetensors", "pytest", "hypothesis",
    }  # fmt: skip


def test_docs_hold_what_was_measured_and_nothing_else(on_gpu):
    from gpu.report import BEGIN, END, render

    page, evidence = REPOSITORY / "docs/speed.md", REPOSITORY / "docs/evidence/gpu.json"
    parts = read_json(evidence) if evidence.exists() else {}
    section = page.read_text().partition(BEGIN)[2].partition(END)[0]
    assert section.strip() == render(parts).strip()
    assert ("Nothing in this section is measured" in section) == (not parts)
