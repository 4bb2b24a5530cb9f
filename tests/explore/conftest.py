"""The published runs of the tier workstation as a tree of results, and records that are made."""

import hashlib
import json
import shutil

import pytest

from moelaws.explore.material import Material
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.spec.project import Project, load_study
from repository import REPOSITORY

EVIDENCE = REPOSITORY / "docs/evidence"


def material_in(root):
    """The study sparsity at the tier workstation, with all published files below ``root``."""
    folder = root / "workstation"
    for kind in ("fits", "contests", "figures"):
        shutil.copytree(EVIDENCE / kind / "sparsity", folder / kind / "sparsity")
    (folder / "tables").mkdir()
    shutil.copy(EVIDENCE / "sparsity.parquet", folder / "tables")
    for name in ("laws.md", "outlook.md"):
        shutil.copy(EVIDENCE / name, folder)
    project = Project(tier="workstation", studies=("sparsity",))
    study = load_study("sparsity", REPOSITORY).at_tier("workstation")
    declared = {path for path in folder.rglob("*") if path.name != "outlook.md"}
    return Material(project, (study,), {}, declared, results=Results(root))


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """The tier for tests that leave it as it is."""
    return material_in(tmp_path_factory.mktemp("results"))


@pytest.fixture
def own(tmp_path):
    """The tier for a test that changes it."""
    return material_in(tmp_path)


@pytest.fixture
def record(tmp_path):
    """A function that writes the record of a run and returns the run's identity."""

    def write(number, message="", status="completed"):
        text = json.dumps({"seed": number})
        run_id = hashlib.sha256(text.encode()).hexdigest()[:16]
        folder = Results(tmp_path).run(run_id)
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(text)
        write_json(folder / "provenance.json", {"code": "c", "started": "now", "device": "cpu"})
        summary = {"run_id": run_id, "status": status, "message": message, "steps": 9}
        write_json(folder / "summary.json", summary)
        return run_id

    return write
