"""What docs/evidence/ ships: records, the tables made of them, and the fits made of the tables."""

import re
import tarfile
from collections import Counter

import pytest

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.files import seal
from moelaws.files.layout import DOCUMENTS, Results
from moelaws.files.parquet import read_origin
from moelaws.fitting.fit import fit
from moelaws.fitting.report import read_fit
from moelaws.grids.expand import expand
from moelaws.grids.text import CorpusChoice
from moelaws.records.runs import all_records
from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus
from moelaws.spec.fit import Fit
from moelaws.spec.hyperparameters import GATES, Choice, read_pinned
from moelaws.spec.project import load_study
from moelaws.studies.sectional.derived.arms import arms
from moelaws.tables.parquet import read_study
from repository import REPOSITORY

EVIDENCE = REPOSITORY / "docs/evidence"
ARCHIVES = {  # in the order of README's table of commits and digests
    "sparsity": ["1e12", "3e12", "1e13"],
    "leverage": ["leverage"],
    "hyperparameters": ["search"],
    "sectional": ["sectional"],
    "routing_choices": ["routing-choices"],
    "first_gpu": ["first-gpu"],
    "transfer": ["transfer"],
}
TIERS = {"first_gpu": "gpu"}  # of others the workstation


@pytest.fixture(scope="module", params=ARCHIVES)
def study(request, tmp_path_factory):
    """A study, and the results below which its records are unpacked."""
    folder = tmp_path_factory.mktemp(request.param)
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # not in Python 3.11.2
    for name in ARCHIVES[request.param]:
        with tarfile.open(EVIDENCE / f"records-{name}.tar.xz") as file:
            file.extractall(folder, **safely)
    return request.param, Results(folder)


def test_a_table_is_made_of_the_records_beside_it(study):
    name, results = study
    table = EVIDENCE / f"{name}.parquet"
    records = {record.run_id: record for record in all_records(results)}
    origin = read_origin(table)
    assert origin["runs"] == {i: seal.digest(results.summary(i)) for i in records}
    assert origin["documents"] == {i: seal.digest(results.run(i) / DOCUMENTS) for i in records}
    losses = read_study(table).set_index("run_id")["L"].to_dict()
    assert losses == {i: record.summary["loss"] for i, record in records.items()}


def test_the_page_names_the_code_that_trained_the_runs(study):
    name, results = study
    page = (EVIDENCE / "README.md").read_text()
    numbers = r" (\d+) \|" * len(ARCHIVES)
    rows = re.findall(rf"^\| ([0-9a-f]{{40}})[^|]*\| ([0-9a-f]{{16}}) \|{numbers}$", page, re.M)
    place = 2 + list(ARCHIVES).index(name)
    counts = Counter({row[:2]: int(row[place]) for row in rows})
    made = [record.provenance for record in all_records(results)]
    assert Counter((one["commit"], one["code"]) for one in made) == counts


def grid_of(name):
    """The grid of a study's runs; of the search, with the gates that its runs have."""
    if name == "first_gpu":
        return load_study("docs/evidence/first-gpu.yaml", REPOSITORY).grids["gpu"]
    grid = load_study(name, REPOSITORY).grids["workstation"]
    if name != "hyperparameters":
        return grid
    settings = grid.settings.model_copy(update={"normalize_top_k": True})
    return grid.model_copy(update={"settings": settings})


def test_every_published_run_is_one_of_its_grid(study):
    """Of today's grid, or of the search's with the old gates, which the page marks."""
    name, results = study
    records = list(all_records(results))
    corpus = Corpus(**records[0].config["corpus"])
    pins = (read_pinned(TIERS.get(name, "workstation"), REPOSITORY, gates) for gates in GATES)
    choice = CorpusChoice(source=corpus.source, validation=corpus.validation)
    runs = expand(grid_of(name), choice, name, choice=Choice("auto", tuple(filter(None, pins))))
    assert {record.run_id for record in records} <= {run.run_id for run in runs}
    page = (EVIDENCE / "README.md").read_text()
    assert "**The runs of the search\nhave other gates**" in page


@pytest.mark.parametrize("study", ["sectional"], indirect=True)
def test_the_page_of_the_study_says_what_the_records_give(study):
    """Each loss less the dense model's, and its interval, in the order of the page's rows."""
    frame = read_study(EVIDENCE / "sectional.parquet")
    made = arms(Inputs(frame=frame, results=study[1]))
    page = (REPOSITORY / "docs/sectional.md").read_text()
    head, *rows = re.search(r"^\| loss less .* \(± .*\n(?:\|.*\n)+", page, re.M)[0].splitlines()
    cells = [row.strip("|").split("|")[1:] for row in rows[1:]]
    sizes = re.findall(r"d = (\d+), (\d+) positions \((?:each )?± ([\d.]+)\)", head)
    assert len(sizes) == len(cells[0]) == 3
    for place, (width, context, error) in enumerate(sizes):
        same = made[(made["d_model"] == int(width)) & (made["context"] == int(context))]
        same = same.dropna(subset="difference")
        printed_differences = [float(number) for cell in cells for number in cell[place].split(",")]
        assert same["difference"].to_list() == pytest.approx(printed_differences, abs=6e-4)
        half = (same["high"] - same["low"]) / 2
        assert half.to_list() == pytest.approx([float(error)] * len(half), abs=6e-4)


@pytest.mark.parametrize("name", ["chinchilla", "wang", "isoflop_total", "isoflop_active"])
def test_a_shipped_fit_is_that_of_the_shipped_table(name):
    spec = load_study("sparsity", REPOSITORY).at_tier("workstation").fit(name)
    table = read_study(EVIDENCE / "sparsity.parquet")
    again = fit(laws.fittable(spec.law), table, spec.model_copy(update={"bootstrap": 0}))
    shipped = read_fit(EVIDENCE / f"fits/sparsity/{name}.json")
    for one, other in zip(again.parts, shipped.parts, strict=True):
        assert one.n == other.n
        assert one.estimates() == pytest.approx(other.estimates(), rel=1e-4)


def test_the_entry_of_each_shipped_fit_can_be_read():
    files = sorted((EVIDENCE / "fits").glob("*/*.json"))
    assert len(files) > 10
    for file in files:
        assert parse(Fit, read_fit(file).spec, file).law
