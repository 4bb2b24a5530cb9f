"""The inputs of a derived table, a figure or a claim: its study's table and what it declares.

Code that reads fits takes ``analysis.fitted.FittedInputs``, so that code which reads none does not
depend on the code of reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.files import seal
from moelaws.files.layout import DOCUMENTS, Results
from moelaws.files.seal import made_of
from moelaws.records.paired import PairedLosses, paired_losses
from moelaws.records.tensors import check_kept, file_of, read_kept
from moelaws.spec.errors import UserError, listed
from moelaws.spec.readers import Reader
from moelaws.spec.rows import select
from moelaws.spec.study import reads_speed
from moelaws.tables.foreign import columns, read_any
from moelaws.tables.parquet import is_study, notes, read_study, read_table
from moelaws.tables.sweeps import in_sweep

EXACT_FITS = "exact_fits"  # a derived table's note


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The files behind one derived table, figure or claim, by the names the study gives them.

    They hold only what the study's entry declares, so that the workflow knows every file that is
    read. A UserError refuses another name, and a file that is missing.
    """

    frame: pd.DataFrame | None = field(repr=False)  # None for a study that only computes
    derived_tables: Mapping[str, Path] = field(default_factory=dict)
    data: Mapping[str, Path] = field(default_factory=dict)  # files of the study's package
    results: Results = field(default_factory=Results)  # where the records of its runs lie
    table_file: Path | None = None  # the file of the frame
    speed_file: Path | None = None  # the measured speeds, for an entry that reads them
    code: str = ""  # the digest of the code that reads the inputs
    _records: set[Path] = field(default_factory=set, repr=False, compare=False)  # read so far

    def declared_by(self, entry: Reader) -> Self:
        """Returns the same table with no other files than the ``entry`` declares."""
        tables = {name: self.derived_tables[name] for name in entry.derived}
        data = {name: self.data[name] for name in getattr(entry, "data", ())}
        speed = self.speed_file if reads_speed(entry) else None
        return replace(self, derived_tables=tables, data=data, speed_file=speed)

    @property
    def table(self) -> pd.DataFrame:
        """Returns the study's table, a row a run; a study without runs has none."""
        if self.frame is None:
            raise UserError("this study has no runs, so it has no table to read")
        return self.frame

    @cached_property
    def completed(self) -> pd.DataFrame:
        """Returns the rows that have a loss, in the table's order."""
        return completed(self.table)

    def sweep(self, name: str) -> pd.DataFrame:
        """Returns the completed rows of the study's sweep ``name``."""
        return self.completed[in_sweep(self.completed, name)].reset_index(drop=True)

    def derived(self, table: str, /, **cells: object) -> pd.DataFrame:
        """Returns the derived table ``table``, or of its rows those with these ``cells``."""
        return having(read_table(declared("derived table", table, self.derived_tables)), **cells)

    def shipped(self, name: str) -> pd.DataFrame:
        """Returns the table in the file ``name`` of the study's package, such as data/a.csv."""
        return read_any(declared("file", name, self.data))[0]

    def history(self, run_id: str) -> pd.DataFrame:
        """Returns the logged steps of a trained run, columns as in ``training.columns``."""
        return self._record(self.results.run(run_id) / "history.parquet")

    def expert_load(self, run_id: str) -> pd.DataFrame:
        """Returns the load of a trained run's experts, columns as in ``training.expert_load``."""
        return self._record(self.results.run(run_id) / "load.parquet")

    def documents(self, run_id: str) -> pd.DataFrame:
        """Returns the held-out loss of a trained run by document, columns as in ``evaluation``."""
        frame = self._record(self.results.run(run_id) / DOCUMENTS)
        if "domain" not in frame or not frame["domain"].any():
            raise UserError(f"run {run_id} is of a version that kept no domains of documents")
        return frame

    def kept_steps(self, run_id: str) -> tuple[int, ...]:
        """Returns the steps before the end at which a run kept its weights, sorted."""
        return read_kept(self.results.weights(run_id)).steps

    def weights(self, run_id: str, step: int | None = None) -> dict[str, NDArray[np.float32]]:
        """Returns the weights of a run after ``step`` (None for the end), by its tensors' names."""
        from safetensors.numpy import load

        path = self.results.weights(run_id) / file_of(step)
        check_kept(path)
        self._records.add(path)
        return dict(load(seal.read(path)))

    def hidden(self, run_id: str) -> pd.DataFrame:
        """Returns the hidden states of a run whose weights are kept (``moelaws probe``)."""
        return self._record(self.results.hidden(run_id))

    def scores(self, run_id: str) -> pd.DataFrame:
        """Returns scores by ``moelaws bench`` for each task and kept step; none without weights."""
        return self._record(self.results.scores(run_id))

    def speed(self) -> pd.DataFrame:
        """Returns the speed of each of the tier's configurations (``moelaws speed``).

        Runs that differ only in seed, learning rate and steps share a configuration, which has the
        ``run_id`` of its first run in the grid's order. The entry must declare speed.
        """
        if self.speed_file is None:
            raise UserError(
                "the code reads measured speeds, which the study's entry does not declare: write "
                "speed: true"
            )
        return self._record(self.speed_file)

    def paired(self, run_ids: Sequence[str]) -> PairedLosses | None:
        """Returns the losses by document of trained runs; None if their documents differ."""
        if self.sources != ("trained",):
            return None  # a simulated run has the identity of the one that would be trained
        try:
            paired = paired_losses(self.results, run_ids)
        except UserError:
            return None
        self._records.update(self.results.run(run_id) / DOCUMENTS for run_id in run_ids)
        return paired

    def _record(self, path: Path) -> pd.DataFrame:
        frame = read_table(path)
        self._records.add(path)
        return frame

    @property
    def files(self) -> list[Path]:
        """Returns the files that are declared, and the records of runs that were read so far."""
        return [
            *filter(None, [self.table_file]),
            *self.derived_tables.values(),
            *self.data.values(),
            *sorted(self._records),
        ]

    def made_of(self) -> dict[str, Any]:
        """Returns the digests of files and code, for the record of what is made of the inputs."""
        return made_of(self.files, self.code)

    @property
    def exact_fits(self) -> set[str]:
        """Returns the fits behind the derived tables that have as many parameters as rows."""
        said = [notes(path).get(EXACT_FITS, "") for path in self.derived_tables.values()]
        return set(" ".join(said).split())

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Returns which of trained, simulated and imported the losses are."""
        own = [] if self.frame is None else list(self.frame["source"].astype(str).unique())
        return tuple(sorted(set("+".join(own).split("+")) - {""}))

    @property
    def stages(self) -> str:
        """Returns the stages of the grid whose runs alone the table has; empty where it has all."""
        return notes(self.table_file).get("stages", "") if self.table_file else ""


def read_runs(table: Path) -> pd.DataFrame:
    """Returns a study's table, which must have a completed run.

    A run that is not known to share a trunk is a trunk of its own.
    """
    frame = read_study(table) if is_study(table) else read_table(table)
    if missing := [name for name in ("run_id", "status", "L") if name not in frame]:
        raise UserError(f"{table}: the column {missing[0]} is missing: this is no table of a study")
    if not len(completed(frame)):
        statuses = listed(sorted(set(frame["status"].astype(str))))
        raise UserError(f"{table} has {len(frame)} rows, and none is completed, but {statuses}")
    ids = frame["run_id"]
    return frame.assign(trunk=frame["trunk"].fillna(ids) if "trunk" in frame else ids)


def completed(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows that have a loss."""
    return frame[(frame["status"] == "completed") & frame["L"].notna()].reset_index(drop=True)


def row_mask(frame: pd.DataFrame, expression: str) -> NDArray[np.bool_]:
    """Returns a mask (n,) of the rows that satisfy ``expression``; all satisfy an empty one."""
    return np.array(np.broadcast_to(select(columns(frame), expression), len(frame)), bool)


def at(frame: pd.DataFrame, column: str, value: float) -> pd.DataFrame:
    """Returns the rows whose ``column`` is ``value``, up to the rounding of its text."""
    return frame[np.isclose(frame[column].astype(float), value, rtol=1e-9, atol=0.0)]


def having(frame: pd.DataFrame, /, **cells: object) -> pd.DataFrame:
    """Returns the rows with these ``cells``; a cell of ``sweep`` may name further sweeps."""
    for column, value in cells.items():
        same = in_sweep(frame, str(value)) if column == "sweep" else frame[column] == value
        frame = frame[same]
    return frame


def declared(kind: str, name: str, known: Mapping[str, Path]) -> Path:
    """Returns the path of ``name``, which must be among the ``known`` ones."""
    if name not in known:
        key = {"fit": "fits", "file": "data"}.get(kind, "derived")
        raise UserError(
            f"the code reads the {kind} {name!r}, which the study's entry does not declare or "
            f"which was not given: write {key}: [{', '.join([*sorted(known), name])}]"
        )
    return known[name]
