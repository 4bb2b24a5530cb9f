"""Where everything lies below ``results/``. No other module knows these paths."""

import re
from dataclasses import dataclass
from pathlib import Path

from moelaws.spec.errors import UserError

CONFIG = "config.json"  # of a run; its digest is the run's id
META = "meta.json"  # of a corpus
TOKENIZER = "tokenizer.json"
LACKED_MEMORY = "lacked_memory.json"
DOCUMENTS = "documents.parquet"  # a run's held-out loss by document
HISTORY_SO_FAR = "history_so_far.parquet"  # of a run that trains; no rule's output
WEIGHTS = "model.safetensors"  # of a run at its end
KEPT = "status.json"
LOCK = "lock"  # of a run that is being trained
ANNOTATIONS = "notes.json"  # what people wrote of a run


def check_run(path: Path, run_id: str | None) -> None:
    """Raises UserError for a file of ``run_id`` in the place of another run's.

    Files older than this check do not say their run, and other folders are no run's.
    """
    place = path.absolute()
    own = place.stem if place.parent.name in ("hidden", "scores") else place.parent.name
    if run_id not in (None, own) and re.fullmatch("[0-9a-f]{16}", own):
        raise UserError(f"{path} is of run {run_id}, and lies where that of run {own} should")


class _Page:
    """A page of a tier, at the top of its folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: "TierFolder", owner: object) -> Path:
        return folder.root / self.name


@dataclass(frozen=True)
class TierFolder:
    """The files of one tier that are made of its runs, or of simulated ones."""

    root: Path

    laws = _Page("laws.md")  # which law to use, by the contests of all shown studies
    claims = _Page("claims.md")  # the judged claims of all shown studies
    outlook = _Page("outlook.md")  # advice beyond the largest budget; with a table and a figure
    cover = _Page("report.rst")  # the report's first page
    explore = _Page("explore.html")  # to open first: all runs, curves, laws and figures
    report = _Page("report.html")  # Snakemake's report, in one file

    def table(self, study: str) -> Path:
        return self.root / "tables" / f"{study}.parquet"

    def derived(self, study: str, name: str) -> Path:
        return self.root / "derived" / study / f"{name}.parquet"

    def speed(self, study: str) -> Path:
        """Returns the table of how fast the study's configurations train, measured side by side."""
        return self.root / "speed" / f"{study}.parquet"

    def fit(self, study: str, fit: str) -> Path:
        """Returns the report of a fit."""
        return self.root / "fits" / study / f"{fit}.json"

    def draws(self, study: str, fit: str) -> Path:
        """Returns the draws of a fit's bootstrap."""
        return self.fit(study, fit).with_suffix(".bootstrap.parquet")

    def figures(self, study: str) -> Path:
        """Returns the folder of the study's figures and paper tables."""
        return self.root / "figures" / study

    def figure(self, study: str, figure: str) -> Path:
        """Returns the PDF; the PNG and the CSV of the plotted numbers lie beside it."""
        return self.figures(study) / f"{figure}.pdf"

    def paper_table(self, study: str, table: str) -> Path:
        """Returns the CSV; Markdown and LaTeX lie beside it."""
        return self.figures(study) / f"{table}.csv"

    def spec(self, kind: str, *names: str) -> Path:
        """Returns the file with the configuration of an entry or a page, an input of its rule."""
        return self.root / "specs" / Path(kind, *names).with_suffix(".json")

    def imported(self, study: str) -> Path:
        """Returns the mark that a user's own study can import its code."""
        return self.root / "imported" / study

    def contest(self, study: str, contest: str) -> Path:
        """Returns the file with the result of a contest of laws."""
        return self.root / "contests" / study / f"{contest}.json"

    def verdicts(self, study: str) -> Path:
        """Returns the file with the judged claims of a study."""
        return self.root / "claims" / f"{study}.json"

    def power(self, study: str) -> Path:
        """Returns the file with the verdicts of a study's rules on simulated tables."""
        return self.root / "power" / f"{study}.json"


@dataclass(frozen=True)
class Results:
    """The folders of one ``results/`` tree."""

    root: Path = Path("results")

    def corpus(self, corpus_id: str) -> Path:
        """Returns the folder with tokenizer, shards and meta.json of a prepared corpus."""
        return self.root / "corpora" / corpus_id

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def run(self, run_id: str) -> Path:
        """Returns the folder of a run's record.

        It holds config.json, three Parquet files (history, load, documents), provenance.json, log
        and summary.json; notes.json of an annotated run; while it trains, a lock and history so
        far.
        """
        return self.runs / run_id

    def summary(self, run_id: str) -> Path:
        """Returns the file that is written last: a run is done when it exists."""
        return self.run(run_id) / "summary.json"

    def annotations(self, run_id: str) -> Path:
        """Returns the file of the tags and the note of a run; no rule reads it."""
        return self.run(run_id) / ANNOTATIONS

    def history_so_far(self, run_id: str) -> Path:
        """Returns the history of an unfinished run, which is removed once the run is done."""
        return self.run(run_id) / HISTORY_SO_FAR

    def lacked_memory(self, run_id: str) -> Path:
        """Returns the file that is written after the summary when a run ends out of memory."""
        return self.run(run_id) / LACKED_MEMORY

    def batch(self, digest: str) -> Path:
        """Returns the marker of a batch, which is written when each of its runs has a summary."""
        return self.root / "batches" / f"{digest}.json"

    def batch_runs(self, digest: str) -> Path:
        """Returns the file with the runs of a batch that the workflow asks for."""
        return self.root / "batches" / f"{digest}.runs.json"

    def probed(self, kind: str, digest: str) -> Path:
        """Returns the marker of a batch whose kept runs are probed; kinds are hidden, scores."""
        return self.root / kind / f"batch_{digest}.json"

    def checkpoint(self, run_id: str) -> Path:
        """Returns the folder of an unfinished run's checkpoint, which is outside its record."""
        return self.root / "checkpoints" / run_id

    def weights(self, run_id: str) -> Path:
        """Returns the folder of the kept weights of a run."""
        return self.root / "weights" / run_id

    def kept(self, run_id: str) -> Path:
        """Returns the file, written after the weights, that says they are there, or why not."""
        return self.weights(run_id) / KEPT

    def hidden(self, run_id: str) -> Path:
        """Returns the file of a kept run's hidden states at sampled held-out tokens."""
        return self.root / "hidden" / f"{run_id}.parquet"

    def tasks(self, corpus_id: str) -> Path:
        """Returns the task file for the runs on a corpus."""
        return self.root / "tasks" / f"{corpus_id}.jsonl"

    def scores(self, run_id: str) -> Path:
        """Returns the file of a kept run's scores on tasks."""
        return self.root / "scores" / f"{run_id}.parquet"

    def imported(self, name: str) -> Path:
        """Returns the table of public runs that the register names."""
        return self.root / "imported" / f"{name}.parquet"

    def fetched(self, name: str) -> Path:
        """Returns the folder of the files that such a table is made of, as they were fetched."""
        return self.root / "imported" / "files" / name

    def tier(self, tier: str, simulated: bool = False) -> TierFolder:
        """Returns the folder of a tier's tables, fits and figures, trained or simulated."""
        folder = self.root / tier
        return TierFolder(folder / "simulated" if simulated else folder)

    def log(self, folder: TierFolder, kind: str, study: str, name: str) -> Path:
        """Returns the log of the command that makes the file ``name`` of a kind, such as fits."""
        below = folder.root.relative_to(self.root)
        return self.root / "logs" / below / kind / study / f"{name}.log"


_FORCE = "snakemake --cores all --force {path} (with the --config of the call that made it)"
_RETRY = "moelaws runs --retry {run}, and then snakemake, which trains that run again"
# Pattern of a file's path in the tree, what the file is, and how to make it again
_KINDS = (
    (r"runs/[^/]+/notes\.json", "the tags and the note of a run", "delete it, and tag anew"),
    (r"runs/(?P<run>[0-9a-f]{16})(/[^/]+)?", "a file in the record of a run", _RETRY),
    (r"weights/(?P<run>[0-9a-f]{16})/[^/]+", "a file of the kept weights of a run", _RETRY),
    (r"hidden/[0-9a-f]{16}\.parquet", "the hidden states of a kept run", _FORCE),
    (r"scores/[0-9a-f]{16}\.parquet", "the scores of a kept run on tasks", _FORCE),
    (r"corpora/[^/]+/[^/]+", "a file of a prepared corpus", "delete {path.parent}, call snakemake"),
    (r"tables/[^/]+\.parquet", "the table of a study", _FORCE),
    (r"imported/(?P<name>[^/]+)\.parquet", "a table of the register", "moelaws import {name}"),
    (r"speed/[^/]+\.parquet", "the measured speed of a study's configurations", _FORCE),
    (r"derived/[^/]+/[^/]+\.parquet", "a derived table", _FORCE),
    (r"fits/[^/]+/[^/]+\.bootstrap\.parquet", "the draws of a fit's bootstrap", _FORCE),
    (r"fits/[^/]+/[^/]+\.json", "the report of a fit", _FORCE),
    (r"contests/[^/]+/[^/]+\.json", "a judged contest of laws", _FORCE),
    (r"claims/[^/]+\.json", "the verdicts on a study's claims", _FORCE),
    (r"power/[^/]+\.json", "the verdicts of a study's rules on simulated tables", _FORCE),
    (r"summary\.json", "the summary of a run", "delete {path.parent} and train the run again"),
    (r"figures/[^/]+/[^/]+", "a file of a figure or of a paper table", _FORCE),
    (r"(claims|laws)\.md|outlook\.\w+|report\.\w+|explore\.html", "a page of a tier", _FORCE),
    (r"[^/]+\.jsonl", "a task file", "write it anew, or delete its last line if you changed it"),
)


def recovery(path: Path) -> tuple[str, str]:
    """Returns what a file of the tree is, in words, and how to make it again."""
    for place, kind, command in _KINDS:
        if match := re.search(rf"(?:^|/){place}$", path.as_posix()):
            return kind, command.format(path=path, **match.groupdict())
    return "this file", "run the command that wrote it"
