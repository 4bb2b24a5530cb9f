"""What docs/evidence/ ships: records, the tables made of them, and the fits made of the tables."""

import tarfile

import pytest

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.fitting.report import read_fit
from moelaws.records import seal
from moelaws.records.layout import DOCUMENTS, Results
from moelaws.records.parquet import read_origin
from moelaws.records.runs import all_records
from moelaws.spec.project import load_study
from moelaws.tables.parquet import read_study
from repository import REPOSITORY

EVIDENCE = REPOSITORY / "docs/evidence"
TABLES = {
    "hyperparameters": ["search"],
    "sparsity": ["1e12", "3e12", "1e13"],
    "leverage": ["leverage"],
}


@pytest.mark.parametrize(("study", "archives"), TABLES.items())
def test_a_table_is_made_of_the_records_beside_it(study, archives, tmp_path):
    for name in archives:
        with tarfile.open(EVIDENCE / f"records-{name}.tar.xz") as file:
            file.extractall(tmp_path, filter="data")
    table, results = EVIDENCE / f"{study}.parquet", Results(tmp_path)
    records = {record.run_id: record for record in all_records(results)}
    origin = read_origin(table)
    assert origin["runs"] == {i: seal.digest(results.summary(i)) for i in records}
    assert origin["documents"] == {i: seal.digest(results.run(i) / DOCUMENTS) for i in records}
    losses = read_study(table).set_index("run_id")["L"].to_dict()
    assert losses == {i: record.summary["loss"] for i, record in records.items()}


@pytest.mark.parametrize("name", ["chinchilla", "wang", "isoflop_total", "isoflop_active"])
def test_a_shipped_fit_is_that_of_the_shipped_table(name):
    spec = load_study("sparsity", REPOSITORY).fit(name)
    table = read_study(EVIDENCE / "sparsity.parquet")
    again = fit(laws.fittable(spec.law), table, spec.model_copy(update={"bootstrap": 0}))
    shipped = read_fit(EVIDENCE / f"fits/sparsity/{name}.json")
    for one, other in zip(again.parts, shipped.parts, strict=True):
        assert one.n == other.n
        assert one.estimates() == pytest.approx(other.estimates(), rel=1e-4)
