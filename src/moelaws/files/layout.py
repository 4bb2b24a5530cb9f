"""Where everything lies below ``results/``. No other module knows these paths."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from moelaws.spec.from_toml import table_beside
from moelaws.spec.tier import TIERS, own_tiers

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


# A file in the place of another study's, tier's, entry's or run's would be taken for that one.
_PLACE = re.compile(
    r"(?:^|/)((?P<tier>[\w.-]+)/(?:simulated/)?"
    r"(?:(?:tables|speed|derived|fits|contests|figures|drawn|claims|power)/[\w./-]+|"
    r"(?:claims|laws)\.md|(?:report|explore|outlook)\.\w+)|"
    r"(?:runs|weights)/[0-9a-f]{16}/[\w.-]+|"
    r"(?:hidden|scores|batches)/[\w.-]+)$",
    re.ASCII,
)


def place_of(path: Path) -> str:
    """Returns a result's own place below ``results/``; empty for a file of another kind."""
    match = _PLACE.search(path.absolute().as_posix())
    if match is None or (match["tier"] not in (None, *TIERS) and match["tier"] not in own_tiers()):
        return ""
    return match[1].replace("/drawn/", "/figures/")


class _Named:
    """A file or folder of a fixed name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, above: "TierFolder | Results", owner: object) -> Path:
        return above.root / self.name


class _Path:
    """A file or folder by names, such as those of a study and its fit, which fill a pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __get__(self, above: "TierFolder | Results", owner: object) -> Callable[..., Path]:
        return lambda *names: above.root / (self.pattern % names)


@dataclass(frozen=True)
class TierFolder:
    """The files of one tier that are made of its runs, or of simulated ones.

    Their names are those of a study and, where there are two, of an entry of the study.
    """

    root: Path

    laws = _Named("laws.md")  # which law to use, by contests
    claims = _Named("claims.md")  # the judged claims
    outlook = _Named("outlook.md")  # advice beyond the largest budget; with a table and a figure
    cover = _Named("report.rst")  # the report's first page
    explore = _Named("explore.html")  # to open first
    report = _Named("report.html")  # Snakemake's report, in one file

    table = _Path("tables/%s.parquet")
    derived = _Path("derived/%s/%s.parquet")
    speed = _Path("speed/%s.parquet")  # of training, side by side
    fit = _Path("fits/%s/%s.json")  # the report
    draws = _Path("fits/%s/%s.bootstrap.parquet")
    contest = _Path("contests/%s/%s.json")
    figures = _Path("figures/%s")
    # Where a job draws them
    drawn = _Path("drawn/%s")
    # The PNG and the CSV of the plotted numbers lie beside a figure.
    figure = _Path("figures/%s/%s.pdf")
    # Markdown and LaTeX lie beside a paper table.
    paper_table = _Path("figures/%s/%s.csv")
    verdicts = _Path("claims/%s.json")
    power = _Path("power/%s.json")  # verdicts on simulated tables
    # The mark that a user's own study can import its code
    imported = _Path("imported/%s")

    def spec(self, kind: str, *names: str) -> Path:
        """Returns the file with the configuration of an entry or a page, an input of its rule."""
        return self.root / "specs" / Path(kind, *names).with_suffix(".json")


@dataclass(frozen=True)
class Results:
    """The folders of one ``results/`` tree."""

    root: Path = Path("results")

    # Of a prepared corpus, by its identity: a folder with tokenizer, shards and meta.json
    corpus = _Path("corpora/%s")
    runs = _Named("runs")
    # Of a run, by its identity. Its folder holds config.json, three Parquet files (history, load,
    # documents), provenance.json, log and summary.json; notes.json of an annotated run; while it
    # trains, a lock and the history so far.
    run = _Path("runs/%s")
    # Written last: a run is done when it exists.
    summary = _Path("runs/%s/summary.json")
    annotations = _Path(f"runs/%s/{ANNOTATIONS}")
    # How often its training failed by itself, and not by a signal
    failures = _Path("runs/%s/failures.json")
    # Removed once the run is done
    history_so_far = _Path(f"runs/%s/{HISTORY_SO_FAR}")
    # Written after the summary
    lacked_memory = _Path(f"runs/%s/{LACKED_MEMORY}")
    # Of an unfinished run, outside its record
    checkpoint = _Path("checkpoints/%s")
    # Of a trunk, by its digest: a lock, and a folder for each state, named by its step
    trunk = _Path("trunks/%s")
    weights = _Path("weights/%s")
    # Written after the weights: says that they are there, or why not
    kept = _Path(f"weights/%s/{KEPT}")
    # Hidden states at sampled held-out tokens
    hidden = _Path("hidden/%s.parquet")
    scores = _Path("scores/%s.parquet")
    # For the runs on a corpus
    tasks = _Path("tasks/%s.jsonl")
    # Of a batch, by its digest. The marker is written when each of its runs has a summary.
    batch = _Path("batches/%s.json")
    # The runs of it that the workflow asks for
    batch_runs = _Path("batches/%s.runs.json")
    # The marker that its kept runs are probed, by kind: hidden or scores
    probed = _Path("%s/batch_%s.json")
    # Of a name of the register: the table of public runs, and the folder of its fetched files
    imported = _Path("imported/%s.parquet")
    fetched = _Path("imported/files/%s")

    def tier(self, tier: str, simulated: bool = False) -> TierFolder:
        """Returns the folder of a tier's tables, fits and figures, trained or simulated."""
        folder = self.root / tier
        return TierFolder(folder / "simulated" if simulated else folder)

    def log(self, folder: TierFolder, kind: str, study: str, name: str) -> Path:
        """Returns the log of the command that makes the file ``name`` of a kind, such as fits."""
        below = folder.root.relative_to(self.root)
        return self.root / "logs" / below / kind / study / f"{name}.log"


_TABLE = table_beside(__file__)  # kinds of files, and the commands that make them again


def recovery(path: Path) -> tuple[str, str]:
    """Returns what a file of the tree is, in words, and how to make it again."""
    for place, kind, again in _TABLE["kinds"]:
        if match := re.search(rf"(?:^|/){place}$", path.as_posix()):
            command = _TABLE["commands"].get(again, again)
            return kind, command.format(path=path, **match.groupdict())
    return "this file", "run the command that wrote it"
