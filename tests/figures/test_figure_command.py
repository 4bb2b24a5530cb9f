"""``moelaws make`` of a derived table and a figure: paths by default and given."""

import json
import shutil
from pathlib import Path

import pytest

from command_line import printed
from moelaws.figures.draw import is_current
from moelaws.files import seal
from moelaws.files.atomic import read_json
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError
from repository import REPOSITORY
from sparsity_case import DEMO, Case, simulate, write_case


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return write_case(tmp_path_factory.mktemp("case"), simulate(DEMO), DEMO)


@pytest.fixture
def project(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """The current folder is a project whose demo tier has its table and fits."""
    (tmp_path / "config" / "studies").mkdir(parents=True)
    (tmp_path / "config" / "config.yaml").write_text("tier: demo\n")
    shutil.copy(REPOSITORY / "config/studies/sparsity.yaml", tmp_path / "config/studies")
    folder = Results(tmp_path / "results").tier("demo")
    case.put(folder)
    monkeypatch.chdir(tmp_path)
    return case


def _made() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path("results").rglob("*") if path.is_file()}


def test_without_out_files_are_read_from_results_and_written_here(project: Case) -> None:
    before = _made()
    drawn = json.loads(printed("make", "figures", "sparsity", "F2b", "--json"))
    assert drawn["files"] == [f"F2b.{suffix}" for suffix in ("pdf", "png", "csv", "json")]
    assert all(Path(file).stat().st_size > 100 for file in drawn["files"])
    assert _made() == before


def test_given_paths_are_read_and_written(project: Case, tmp_path: Path) -> None:
    out = tmp_path / "elsewhere" / "F2b.pdf"
    printed("make", "figures", "sparsity", "F2b", "--table", project.table, "--out", out)
    files = sorted(p.name for p in out.parent.iterdir())
    assert files == ["F2b.csv", "F2b.json", "F2b.pdf", "F2b.png"]
    record = read_json(out.with_suffix(".json"))
    read = (project.table, Results().tier("demo").fit("sparsity", "isoflop_total"))
    files = record["made_of"]["files"]
    assert {str(path): seal.digest(path) for path in read}.items() <= files.items()
    assert record["files"] == {name: seal.digest(out.with_name(name)) for name in record["files"]}
    whole = {path: path.read_bytes() for path in out.parent.iterdir()}
    read[1].unlink()
    with pytest.raises(UserError, match="no such file"):  # what was drawn before stays
        printed("make", "figures", "sparsity", "F2b", "--table", project.table, "--out", out)
    assert {path: path.read_bytes() for path in out.parent.iterdir()} == whole
    out.with_suffix(".json").write_text('{"made_of": 5}')  # by another program
    assert not is_current(*[None] * 3, out)
