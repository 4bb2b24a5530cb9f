"""Verifies a results tree: what is whole, damaged, stale, orphaned or cannot be verified."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Literal, get_args

from moelaws.corpus.shards import PreparedCorpus
from moelaws.files.atomic import read_json
from moelaws.files.layout import META, Results, TierFolder
from moelaws.files.parquet import read_origin
from moelaws.records import chain
from moelaws.records.code import digest, training_code
from moelaws.records.registration import files_of
from moelaws.records.runs import read_record
from moelaws.records.tensors import config_of
from moelaws.spec.advice import AdviceConfig
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.study import Study, reads_speed
from moelaws.workflow import code

State = Literal["whole", "unverified", "unfinished", "stale", "orphaned", "damaged"]
STATES: tuple[State, ...] = get_args(State)
Behind = Callable[[], tuple[Path, ...]]  # returns the source files that would make a file now
NOT_IT = "it is not what was written here"
_digest = cache(digest)
_KINDS = table_beside(__file__)


@dataclass(frozen=True)
class Verdict:
    """The state of one run or file."""

    kind: str  # such as runs, corpora, weights, tables, derived, fits or figures
    path: Path
    state: State
    reason: str = ""  # why it is not whole; empty if it is


@dataclass(frozen=True)
class Verification:
    """The tree, and what the project asks for."""

    results: Results
    # All known ones by key; a file of none of their entries is orphaned
    studies: Mapping[str, Study]
    expected_runs: frozenset[str] | None = None  # by their grids; None if that is unknown
    advice: AdviceConfig | None = None  # the laws for an outlook; None for a project without any

    def shared(self) -> Iterator[Verdict]:
        """Verifies what all tiers share: registrations, runs, texts, weights, states, scores."""
        for path in files_of():
            yield self._sealed("registrations", path, False)
        yield from map(self._run, _folders(self.results.runs))
        yield from map(_corpus, _folders(self.results.root / "corpora"))
        for kind, pattern in _KINDS["shared"].items():
            for path in _files(self.results.root, pattern):
                run = path.parent.name if kind == "weights" else path.stem
                yield self._sealed(kind, path, kind != "tasks" and self._is_orphan(run))

    def tier(self, folder: TierFolder) -> Iterator[Verdict]:
        """Verifies what was made of the runs of one tier."""
        for kind, pattern in _KINDS["of_tier"].items():
            for path in _files(folder.root / kind, pattern):
                names = path.relative_to(folder.root / kind).with_suffix("").parts
                yield self._with_origin(kind, path, *names)
        for path in _files(folder.root / "fits", f"*/*{chain.DRAWS}"):
            name = path.name.removesuffix(chain.DRAWS)
            orphaned = name not in self._names("fits", path.parent.name)
            yield self._sealed("draws of fits", path, orphaned)
        for path in _files(folder.root, f"{folder.outlook.stem}.json"):
            behind = None if self.advice is None else partial(code.of_outlook, self.advice)
            yield self._made("outlook", path, behind)
        pages = (folder.claims, folder.laws, folder.cover, folder.explore, folder.report)
        for path in (*pages, folder.outlook, folder.outlook.with_suffix(".png")):
            if path.is_file():
                yield self._sealed("pages", path, False)

    def _run(self, folder: Path) -> Verdict:
        record = read_record(self.results, folder.name)
        files = [folder / f"{name}.parquet" for name in ("history", "load", "documents")]
        damaged = [*record.damaged, *(p.name for p in files if p.is_file() and wrong(p))]
        if damaged:
            return Verdict("runs", folder, "damaged", ", ".join(damaged))
        if not record.summary:
            return Verdict("runs", folder, "unfinished", record.status)
        if self._is_orphan(folder.name):
            return Verdict("runs", folder, "orphaned", "no grid of this project asks for it")
        if record.is_stale(training_code()):
            return Verdict("runs", folder, "stale", "other training code trained it")
        return Verdict("runs", folder, chain.inspect(folder / "summary.json")[0])

    def _sealed(self, kind: str, path: Path, orphaned: bool) -> Verdict:
        """Verifies a file that does not record its origin."""
        if reason := wrong(path):
            return Verdict(kind, path, "damaged", reason)
        if orphaned:
            return Verdict(kind, path, "orphaned", "no entry of this project asks for it")
        return Verdict(kind, path, chain.inspect(path)[0])

    def _with_origin(self, kind: str, path: Path, study: str, name: str = "") -> Verdict:
        """Verifies a file of a study's entry, which records what it was made of."""
        spec, own = self.studies.get(study), _KINDS["keys"].get(kind, kind)
        unread = kind == "speed" and spec and not any(map(reads_speed, spec.derived))
        if spec is None or unread or (name and name not in self._names(own, study)):
            return self._made(kind, path, None)
        simulated = "simulated" in path.parts
        verdict = self._made(kind, path, partial(code.of_entry, spec, own, name, simulated))
        if kind != "figures" or verdict.state != "whole":
            return verdict
        if read_json(path).get("entry") == spec.entry(own, name).fingerprint():
            return verdict
        return replace(verdict, state="stale", reason="its entry in the study changed")

    def _made(self, kind: str, path: Path, behind: Behind | None) -> Verdict:
        """Verifies a file that records its origin; without code ``behind`` it is orphaned."""
        try:
            top = chain.link(path)
            damaged = _damaged_files(path) if kind == "figures" else []
        except UserError as error:
            return Verdict(kind, path, "damaged", str(error))
        if top.state == "damaged" or damaged:
            return Verdict(kind, path, "damaged", ", ".join(damaged) or NOT_IT)
        if behind is None:
            return Verdict(kind, path, "orphaned", "no entry of this project asks for it")
        if reason := self._stale(top, behind):
            return Verdict(kind, path, "stale", reason)
        return Verdict(kind, path, "whole" if top.state == "whole" else "unverified")

    def _stale(self, top: chain.Link, behind: Behind) -> str:
        """Returns why a file would now be made differently; empty if no reason is known."""
        others = [f"{i.path} is {i.state}" for i in top.inputs if i.state in ("changed", "missing")]
        if runs := chain.changed_runs(top, self.results):
            others.append(
                f"{len(runs)} of its {len(top.origin.runs)} runs changed: {', '.join(runs[:3])}"
            )
        if top.origin.code and top.origin.code != _digest(behind()):
            others.append("other code made it")
        return "; ".join(others)

    def _names(self, kind: str, study: str) -> set[str]:
        known = self.studies.get(study)
        return {entry.name for entry in getattr(known, kind)} if known else set()

    def _is_orphan(self, run_id: str) -> bool:
        return self.expected_runs is not None and run_id not in self.expected_runs


def wrong(path: Path) -> str:
    """Returns why a file is damaged: its content changed, or it is another's."""
    if chain.inspect(path)[0] == "damaged":
        return NOT_IT
    try:
        if path.suffix == ".safetensors":
            config_of(path)
        elif path.suffix == ".json":
            read_json(path)
        elif path.suffix == ".parquet":
            read_origin(path)
        return ""
    except UserError as error:
        return str(error)


def _corpus(folder: Path) -> Verdict:
    meta = folder / META
    if not meta.is_file():
        return Verdict("corpora", meta, "unfinished", "it is not there")
    try:
        PreparedCorpus.open(folder)
    except UserError as error:
        return Verdict("corpora", meta, "damaged", str(error))
    return Verdict("corpora", meta, chain.inspect(meta)[0])


def _damaged_files(record: Path) -> list[str]:
    """Returns the files of a figure or paper table that are gone or differ from its record."""
    files = read_json(record).get("files", {})
    paths = {record.with_name(name): sha for name, sha in files.items()}
    return [p.name for p, sha in paths.items() if not p.is_file() or chain.inspect(p)[1] != sha]


def _folders(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir()) if path.is_dir() else []


def _files(path: Path, pattern: str) -> list[Path]:
    """Returns the files that match, sorted, without temporaries, whose names begin with a dot."""
    return sorted(p for p in path.glob(pattern) if p.is_file() and not p.name.startswith("."))
