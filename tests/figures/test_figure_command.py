"""``moelaws derive`` and ``moelaws figure``: paths by default and given, mistakes in words."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from sparsity_case import DEMO, Case, Setting

from moelaws.cli import derive as derive_command
from moelaws.cli import figure as figure_command
from moelaws.records.layout import Results
from moelaws.spec.errors import UserError

MakeCase = Callable[[Setting], Case]


@pytest.fixture
def project(make_case: MakeCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """The current folder is a project whose demo tier has its table and fits."""
    case = make_case(DEMO)
    (tmp_path / "config" / "studies").mkdir(parents=True)
    (tmp_path / "config" / "config.yaml").write_text("tier: demo\n")
    study = yaml.safe_dump(case.study.model_dump(mode="json"))
    (tmp_path / "config" / "studies" / "sparsity.yaml").write_text(study)
    results = Results(tmp_path / "results")
    _copy(case.table, results.table("demo", "sparsity"))
    for name, path in case.fits.items():
        _copy(path, results.fit("demo", "sparsity", name))
        draws = ".bootstrap.parquet"
        _copy(path.with_suffix(draws), results.fit("demo", "sparsity", name).with_suffix(draws))
    monkeypatch.chdir(tmp_path)
    return case


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def test_derive_then_figure_with_default_paths(project: Case) -> None:
    made = _run(derive_command.command, "optima", "--study", "sparsity", "--json")
    assert json.loads(made)["file"] == "results/demo/derived/sparsity/optima.parquet"
    drawn = json.loads(_run(figure_command.command, "F3a", "--json"))
    assert drawn["files"] == [
        f"results/demo/figures/sparsity/F3a.{suffix}" for suffix in ("pdf", "png", "csv")
    ]
    assert all(Path(file).stat().st_size > 100 for file in drawn["files"])


def test_given_paths_are_read_and_written(project: Case, tmp_path: Path) -> None:
    shutil.rmtree("results")
    fit = f"isoflop_total={project.fits['isoflop_total']}"
    out = tmp_path / "elsewhere" / "F2b.pdf"
    _run(
        figure_command.command,
        *("F2b", "--study", "sparsity", "--table", str(project.table)),
        *("--fit", fit, "--out", str(out)),
    )
    assert sorted(p.name for p in out.parent.iterdir()) == ["F2b.csv", "F2b.pdf", "F2b.png"]
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["F99"], "no study has a figure 'F99'; there are: F1a"),
        (["F99", "--study", "sparsity"], "study 'sparsity' has no figure 'F99'; there are: F1a"),
        (["F3a"], "optima.parquet: no such table"),
        (["F2b", "--tier", "gpu"], "results/gpu/tables/sparsity.parquet: no such table"),
        (["F2b", "--fit", "loss=x.json"], "the study's entry declares isoflop_total"),
        (["F2b", "--fit", "isoflop_total"], "NAME=FILE is wanted"),
        (["F2b", "--fit", "isoflop_total=x.json"], "x.json: no such file"),
    ],
)
def test_mistakes_are_named(project: Case, arguments: list[str], text: str) -> None:
    with pytest.raises(UserError) as error:
        CliRunner().invoke(figure_command.command, arguments, catch_exceptions=False)
    assert text in str(error.value)


def test_unknown_derived_table_is_named(project: Case) -> None:
    with pytest.raises(UserError, match=r"no derived table 'optimum'; there are: optima, sparsity"):
        CliRunner().invoke(
            derive_command.command, ["optimum", "--study", "sparsity"], catch_exceptions=False
        )


def _run(command: object, *arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)  # type: ignore[arg-type]
    assert result.exit_code == 0, result.output
    return result.stdout
