"""A user's own study: a grid alone is enough, and it may lie anywhere, however its path is spelled.

The study is the one of docs/adding-a-study.md, which has one entry of each kind.
"""

import os
import re
import shlex
import shutil

import pytest

from own_study import STEPS, write_study
from sweep_copy import Copy

pytestmark = pytest.mark.slow


@pytest.fixture
def copy(tmp_path):
    return Copy.of_repository(tmp_path / "copy")


def test_a_study_of_a_grid_alone_is_trained_and_has_a_table(copy, tmp_path):
    write_study(tmp_path / "{ours}")  # no rule reads code from there
    study = "studies=../{ours}/study.yaml"
    copy.snakemake("--config", study)
    tier = copy.root / "results/demo"
    assert len(copy.summaries()) == len(STEPS)
    assert (tier / "tables/dense.parquet").exists()
    assert (tier / "explore.html").exists()
    assert not (tier / "report.html").exists()  # there is nothing to show in it
    assert copy.planned("--config", study) == {}
    done = copy.moelaws("archive", "--to", "a.zip", "--set", study)
    assert done.returncode == 0, done.stderr


def test_a_study_may_lie_anywhere_and_its_path_be_spelled_in_any_way(copy, tmp_path):
    folder = tmp_path / 'our étude 🎲, it\'s "c": #1'
    write_study(folder, "package", "derived", "fits", "figures", "claims")
    (folder / "study.yaml").rename(folder / "étude.yaml")
    near = os.path.relpath(folder / "étude.yaml", copy.root)
    quoted = near.replace("'", "''")
    copy.snakemake("--config", f"studies=['{quoted}']")
    assert "Data" in (copy.root / "results/demo/report.html").read_text()
    copy.edit("config/config.yaml", "studies: .*", f"studies: ['{quoted}']")
    assert copy.planned() == {}
    far = str(folder / "étude.yaml").replace("'", "''")
    assert copy.planned("--config", f"studies=['{far}']") == {}
    done = copy.moelaws("archive", "--to", "a.zip")
    assert done.returncode == 0, done.stderr
    unpacked = Copy(tmp_path / "unpacked")
    shutil.unpack_archive(copy.root / "a.zip", unpacked.root)
    shutil.copytree(copy.root / "text", unpacked.root / "text")
    (line,) = re.findall(
        "snakemake --cores all -n (.*)", (unpacked.root / "README.txt").read_text()
    )
    assert "étude" in line
    assert "train" not in unpacked.planned(*shlex.split(line))
