"""Each kind of file that the workflow writes, damaged: no other number ever comes out of it."""

import hashlib
import os
import shlex

import pytest
from hostile_outcome import SEED, TALLY, cases, chance_of, command, judged, outcome

from moelaws.cli import end_as

pytestmark = pytest.mark.slow


def answering(work, out):
    """What a command prints, and the digest of the file ``out`` if it writes one."""

    def both():
        try:
            work()
        except SystemExit as end:
            if end.code not in (0, 1):  # 1 is of `moelaws verify`, where something is damaged
                raise
        if out.is_file():
            print(hashlib.sha256(out.read_bytes()).hexdigest())

    return both


def show_table(path):
    from moelaws.tables.parquet import read_table

    print(read_table(path).to_json())


def show_corpus(path):
    from moelaws.corpus.shards import PreparedCorpus

    data = PreparedCorpus.open(path.parent)
    print(int(data.train.sum()), int(data.validation.sum()), data.token_bytes.sum())
    print(data.validation_starts.tolist(), data.meta["corpus_id"])


def show_weights(path):
    from moelaws.training.weights import load

    config, model = load(path.parent)
    print(config.run_id, [float(p.sum()) for p in model.parameters()])


# What reads a kind, if it is no command
SHOWN = {"parquet": show_table, "corpus": show_corpus, "weights": show_weights}
COLLECT, PAGE = "make runs sparsity --out collected.parquet", "--out page.md --json"
AT = "N=1e4 D=1e5 S=0.5"
CLAIMS, FIT = "results/demo/claims/sparsity.json", "results/demo/fits/sparsity/loss.json"
# Kind -> its files below results/, the words that read one, and the file that these write
KINDS = {
    "table": ("demo/tables/*", "query 'SELECT sum(L), sum(C), max(run_id) FROM sparsity' --json"),
    "summary": ("runs/*/summary.json", "show {run} --json"),
    "configuration": ("runs/*/config.json", "query 'SELECT * FROM runs' --json"),
    "collected": ("runs/*/[sp]*.json runs/*/history.parquet", COLLECT, "collected.parquet"),
    "curves": ("runs/*/history.parquet runs/*/load.parquet demo/derived/*/*", "parquet"),
    "documents": ("runs/*/documents.parquet", "diff {run} {other} --json"),
    "fit": ("demo/fits/sparsity/loss.*", f"eval sparsity.loss {AT} --params {FIT} --json"),
    "verdicts": ("demo/claims/*", f"claims {{path}} {PAGE}"),
    "power": ("demo/power/*", f"claims {CLAIMS} --power {{path}} {PAGE}"),
    "contest": ("demo/contests/*/*", f"contests {{path}} {PAGE}"),
    "record": ("demo/figures/sparsity/*.json", "show {path} --json"),
    "page": (
        "demo/figures/sparsity/*.png demo/figures/sparsity/T*.csv demo/*.md",
        "explore --out page.html --json",
        "page.html",
    ),
    "corpus": ("corpora/*/*", "corpus"),
    "tasks of a text": (
        "corpora/*/validation* corpora/*/tokenizer.json",
        "tasks held-out --corpus {folder} --json",
    ),
    "weights": ("weights/*/*", "weights"),
    "archive": (
        "demo/figures/sparsity/* demo/*.html demo/*.rst demo/*.md runs/*/*",
        "archive --to a.zip --force --set studies=sparsity",
    ),
    "tree": ("", "verify --json"),
}


@pytest.fixture(scope="session")
def readers(swept):
    """Kind -> (its files, what reads one of them and prints what it makes of it)."""
    root, runs = swept.root, sorted((swept.root / "results/runs").iterdir())

    def reader(words, out="", path=None):
        if words in SHOWN:
            return lambda: end_as(lambda: SHOWN[words](path))
        run, other = path.parent.name, runs[path.parent == runs[0]].name
        fill = {"path": path, "folder": path.parent, "run": run, "other": other}
        work = command(root, *(word.format(**fill) for word in shlex.split(words)))
        return answering(work, root / out)

    found = {}
    for kind, (patterns, *how) in KINDS.items():
        files = [p for each in patterns.split() for p in sorted(root.glob(f"results/{each}"))]
        found[kind] = (files or all_files(root), lambda path, how=how: reader(*how, path=path))
    return found


def all_files(root):
    """All results but logs, one kind of file as often as another."""
    files = {}
    for path in sorted(root.glob("results/*/**/*")):
        if path.is_file() and path.suffix != ".log" and path.name not in ("log", "lock"):
            names = path.relative_to(root / "results").parts
            kind = path.name if names[0] == "runs" else names[:2]
            files.setdefault((kind, path.suffix), []).append(path)
    return [path for of_kind in files.values() for path in of_kind[:3]]


def flipped(data, others, chance):
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def cut(data, others, chance):
    return data[: chance.randrange(len(data))]


def edited(data, others, chance):
    """A digit changed, as by hand; of a file without any, a bit."""
    digits = [i for i, byte in enumerate(data) if byte in b"0123456789"]
    if not digits:
        return flipped(data, others, chance)
    place = chance.choice(digits)
    return data[:place] + bytes([48 + (data[place] - 47) % 10]) + data[place + 1 :]


def noise(data, others, chance):
    return chance.randbytes(chance.choice((0, 1, 64, len(data))))


def foreign(data, others, chance):
    """JSON that holds nothing of what the file should."""
    return chance.choice((b"{}", b"[]", b"7", b"null", b'"x"', b'{"made_of": 1, "study": {}}'))


def swapped(data, others, chance):
    """A file of its kind in its place: that of another study, entry or run."""
    return chance.choice(others[0] or others[1]).read_bytes()


def alien(data, others, chance):
    """A file of another kind."""
    return chance.choice(others[1]).read_bytes()


DAMAGE = (flipped, flipped, flipped, cut, edited, noise, foreign, swapped, swapped, alien)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(readers, kind):
    files, reader = readers[kind]
    assert files
    chance, answers = chance_of("damage", kind), {}
    for number in range(cases(1, 40 if kind == "tree" else 17)):
        path, damage = chance.choice(files), chance.choice(DAMAGE)
        data = path.read_bytes()
        if path not in answers:
            whole = outcome(reader(path))
            assert whole.code == 0, whole.stderr
            answers[path] = whole.stdout
        same = [p for p in files if p.suffix == path.suffix and p != path]
        others = [p for each, _ in readers.values() for p in each if p.suffix != path.suffix]
        path.write_bytes(damage(data, (same, others), chance))
        try:
            case = f"{kind}, case {number}: {path} {damage.__name__}"
            judged(case, outcome(reader(path)), answers[path])
        finally:
            path.write_bytes(data)


def test_snakemake_goes_on_or_says_what_is_damaged(swept):
    files, chance = all_files(swept.root), chance_of("planned")
    for number in range(cases(1, 12)):
        path, damage = chance.choice(files), chance.choice(DAMAGE[:7])
        data, times = path.read_bytes(), path.stat()
        path.write_bytes(damage(data, (), chance))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        done = swept.snakemake("-n", check=False)
        path.write_bytes(data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        said = done.stdout + done.stderr
        TALLY["cases"] += 1
        TALLY["refused" if done.returncode else "answered"] += 1
        case = f"case {number} of seed {SEED}: {path} {damage.__name__}"
        assert "Traceback" not in said, f"{case}: {said}"
        assert done.returncode == 0 or "moelaws: " in done.stderr, f"{case}: {said}"
