"""A finished small sweep that is damaged again and again, and the count of what came of it."""

import shutil

import pytest
import yaml
from hostile_outcome import SEED, TALLY

from sweep_copy import Copy

KINDS = (
    *("cases", "same", "answered", "refused", "traceback", "hang", "another answer"),
    *("kills", "ended before the kill", "faults", "full disks", "lost"),
)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # one of several processes of pytest-xdist
        session.config.workeroutput["hostile"] = dict(TALLY)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    TALLY.update(getattr(node, "workeroutput", {}).get("hostile", {}))


def pytest_terminal_summary(terminalreporter):
    if TALLY:
        counts = ", ".join(f"{TALLY[kind]} {kind}" for kind in KINDS)
        terminalreporter.write_line(f"hostile, seed {SEED}: {counts}")


@pytest.fixture(scope="session")
def swept(finished, tmp_path_factory):
    """A finished sweep whose weights are kept in part."""
    root = tmp_path_factory.mktemp("hostile") / "swept"
    copy = Copy(shutil.copytree(finished.root, root, symlinks=True))
    study = copy.study()
    study["keep_weights"] = "C <= 2e8 and S == 0 and d_model == 8"
    (contest,) = study["contests"]
    # Two laws that are fitted in no time: a phase is run some hundred times here.
    contest |= {"laws": ["chinchilla", "wang.loss"], "mappings": {}}
    contest["protocol"] = {"objective": "squared", "sample": 20}
    copy.write_study(study)
    # A tier of one's own, from which `moelaws next` chooses, too
    wide = study["grids"]["demo"] | {"sweeps": [{"axes": {"C": 2e8, "S": 0, "d_model": [16, 20]}}]}
    (root / "config/tiers").mkdir()
    (root / "config/tiers/wide.yaml").write_text(yaml.safe_dump({"sparsity": wide}))
    copy.snakemake()
    shutil.copytree(root / "results", root.parent / "results", symlinks=True)
    return copy


@pytest.fixture(autouse=True)
def the_same_results(request):
    """Puts the results back after each test: runs trained anew, say, tell of other times."""
    yield
    if "swept" in request.fixturenames:
        root = request.getfixturevalue("swept").root
        shutil.rmtree(root / "results")
        shutil.copytree(root.parent / "results", root / "results", symlinks=True)
