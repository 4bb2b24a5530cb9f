"""The phases of the pipeline: commands that make a finished sweep's files anew, and these."""

import hashlib
import multiprocessing.popen_fork  # noqa: F401  (another user may not read it)
import shutil
import zipfile
from functools import cache

from hostile_outcome import command
from safetensors.numpy import load_file

# Loaded once, for the many processes that are forked from this one.
import moelaws.analysis.derive
import moelaws.claims.judge
import moelaws.explore.page
import moelaws.figures.draw
import moelaws.fitting.contest
import moelaws.fitting.fit
import moelaws.tables.simulate
import moelaws.training.pool
import moelaws.training.run
import moelaws.workflow.archive  # noqa: F401
from moelaws.files import seal
from moelaws.files.atomic import read_json
from moelaws.files.leftovers import temporaries
from moelaws.tables.parquet import read_table

TIER = "results/demo"
ENTRY = f"--tier demo --out {TIER}"
PHASES = {
    "corpus": "corpus --vocab-size 300 --out {corpus}",
    "train": "train {batch} --workers 2",
    "aggregate": f"make runs sparsity {ENTRY}/tables/sparsity.parquet",
    "fit": f"make fits sparsity chinchilla {ENTRY}/fits/sparsity/chinchilla.json",
    "derive": f"make derived sparsity optima {ENTRY}/derived/sparsity/optima.parquet",
    "figure": f"make figures sparsity F7 {ENTRY}/figures/sparsity/F7.pdf",
    "table": f"make tables sparsity T3 {ENTRY}/figures/sparsity/T3.csv",
    "judge": f"make claims sparsity {ENTRY}/claims/sparsity.json",
    "claims": f"claims {TIER}/claims/sparsity.json --tier demo --out {TIER}/claims.md",
    "contest": f"make contests sparsity laws {ENTRY}/contests/sparsity/laws.json",
    "contests": f"contests {TIER}/contests/sparsity/laws.json --tier demo --out {TIER}/laws.md",
    "outlook": f"outlook {TIER}/fits/sparsity/loss.json --table {TIER}/tables/sparsity.parquet "
    f"--tier demo --out {TIER}/outlook.md",
    "explore": f"explore --out {TIER}/explore.html",
    "archive": "archive --force --to results/sweep.zip",
    "next": "next sparsity --target C=1e9 --budget 100% --rounds 2 --pool wide "
    "--law chinchilla --law wang.loss",
}
# Of a run's record what tells the time of its processes
TIMES = ("wall_seconds", "training_seconds", "tokens_per_second", "peak_memory_bytes", "seconds")
PASSING = ("lock", "log", "digests.json")  # the last is a cache
ROUNDS = "config/studies/sparsity.rounds.yaml"


class Phase:
    """A phase in the folder of a finished sweep."""

    def __init__(self, root, name):
        (corpus,) = (path.parent for path in root.glob("results/corpora/*/meta.json"))
        (batch,) = root.glob("results/batches/*.runs.json")
        self.words = PHASES[name].format(corpus=corpus, batch=batch).split()
        self.work = command(root, *self.words)
        runs = sorted((root / "results/runs").iterdir())[:2]
        runs += [root / "results/weights" / run.name for run in runs]
        # What is there is not made again: a text, runs, rounds.
        self.gone = {"corpus": [corpus], "train": runs, "next": [root / ROUNDS]}.get(name, [])

    def clear(self):
        for path in self.gone:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def left_over(root):
    """What a writer that was killed or failed left beside the files that it writes."""
    folders = [root / "config/studies", *root.glob("results/**/")]
    return [path for folder in folders for path in temporaries(folder)]


def content(root):
    """Name -> what must be the same again, of all results but logs, and what nobody reads again."""
    found = {}
    for path in [*root.glob("results/**/*"), root / ROUNDS]:
        name = path.relative_to(root).as_posix()
        own = name.split("/")[1] not in ("logs", "checkpoints", "trunks") and path.name[0] != "."
        if path.is_file() and own and path.name not in PASSING and path.suffix != ".log":
            about = path.stat()
            found[name] = _lasting(path, about.st_ino, about.st_mtime_ns)
    return found


@cache
def _lasting(path, *version):
    """The digest of a file; of a run and a page without the times, which are others each time."""
    if path.name == "summary.json":
        return {key: value for key, value in read_json(path).items() if key not in TIMES}
    if path.name == "history.parquet":
        return read_table(path).drop(columns=[*TIMES], errors="ignore").to_json()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as packed:
            assert packed.testzip() is None
            return sorted(packed.namelist())
    if path.suffix == ".safetensors":  # the library writes its header's keys in any order
        return {name: hash(one.tobytes()) for name, one in load_file(path).items()}
    if path.suffix == ".html" or path.name == "provenance.json":
        return seal.inspect(path)[0]
    return hashlib.sha256(path.read_bytes()).hexdigest()
