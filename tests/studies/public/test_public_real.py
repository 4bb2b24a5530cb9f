"""Numbers of the real files, where MOELAWS_PUBLIC names a folder that has them."""

import hashlib
import shutil
from pathlib import Path

import pytest

from moelaws.laws import marin
from moelaws.tables.mapping import read_mapping
from public_case import Register
from public_runs import public
from repository import REPOSITORY


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The study of marin's isoFLOP runs and ladder."""
    files = {
        "marin-v16": ("marin_v16.json", "marin_old.json"),
        "marin-ladder": ("marin_ladder.md",),
    }
    paths = {name: [public(file) for file in own] for name, own in files.items()}
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("real")
        shutil.copytree(REPOSITORY / "config", root / "config")
        patch.chdir(root)
        register = Register()
        for name, own in paths.items():
            register.add(name, lambda folder, name=name, own=own: gather(folder, name, own))
        yield register


def gather(folder, name, paths):
    """Copies files under the names that the mapping gives them, known by their digests."""
    folder.mkdir(parents=True)
    known = read_mapping(REPOSITORY / f"config/imports/{name}.yaml").origin.files
    for path, file in zip(paths, known, strict=True):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert file.sha256 in ("", digest)
        shutil.copy(path, Path(folder) / file.file)


def test_the_frontier_is_the_one_that_marin_prints(real):
    """L = 1.6 + 95.18 C^-.0941, from the same runs by parabolas of the authors' own."""
    fitted = real.fit("frontier").group({}).params
    assert fitted["alpha"].estimate == pytest.approx(0.0941, abs=0.0015)
    own = real.derived("predictions").query("fit == 'frontier'")["value"].iloc[0]
    law = marin.VARIANTS["loss"]
    printed = float(law.evaluate(law.published, {"C": 1e21})["L"])
    assert own == pytest.approx(printed, abs=0.01)
    assert own == pytest.approx(2.611, abs=0.002)


def test_three_of_four_runs_of_1e21_lie_in_the_calibrated_interval(real):
    rows = real.derived("predictions").query("fit == 'frontier'")
    assert rows["inside"].sum() == 3
    assert rows["inside_alone"].sum() == 1
    assert sorted(rows["observed"].round(3)) == [2.599, 2.606, 2.625, 2.646]
    assert rows["low"].iloc[0] == pytest.approx(2.591, abs=0.003)
    assert rows["high"].iloc[0] == pytest.approx(2.632, abs=0.003)
    assert real.judge("the_frontier_predicts_a_larger_budget")["verdict"] == "supported"


def test_the_best_size_grows_as_the_root_of_compute_and_the_exponent_in_print_is_at_the_end(real):
    exponent = real.fit("size").group({"group": "marin-v16"}).params["exponent"]
    assert exponent.estimate == pytest.approx(0.501, abs=0.002)
    assert exponent.low < 0.5 < exponent.high
    printed = marin.LAW.published["N_active_exponent"]
    assert exponent.high == pytest.approx(printed, abs=0.003)
    verdict = real.judge("the_best_size_grows_faster_than_the_tokens")
    assert verdict["verdict"].startswith("cannot tell")


def test_a_mixture_of_the_ladder_needs_four_times_less_compute(real):
    row = real.derived("leverage").set_index("floor").loc[1.2]
    assert row["leverage"] == pytest.approx(4.26, abs=0.02)
    assert row["low"] < 4.2 < row["high"]
    assert real.judge("a_mixture_needs_several_times_less_compute")["verdict"] == "supported"
