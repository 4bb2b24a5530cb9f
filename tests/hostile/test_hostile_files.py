"""Each kind of file that the workflow writes, damaged: no other number ever comes out of it."""

import hashlib
import os

import pytest
from hostile_outcome import SEED, TALLY, cases, chance_of, command, judged, outcome

from moelaws.cli import end_as
from moelaws.files.layout import TOKENIZER

pytestmark = pytest.mark.slow


def printed_table(path):
    def work():
        from moelaws.tables.parquet import read_table

        end_as(lambda: print(read_table(path).to_json()))

    return work


def digest_after(make, out):
    """What a command prints, and the digest of the file ``out`` that it writes."""

    def work():
        try:
            make()
        except SystemExit as end:
            if end.code:
                raise
        print(hashlib.sha256(out.read_bytes()).hexdigest())

    return work


def collected(root):
    """The study's table made again."""
    out = root / "collected.parquet"
    return digest_after(command(root, "aggregate", "sparsity", "--out", out), out)


def explored(root):
    """The page of all that was made, which also says what it left out."""
    out = root / "page.html"
    return digest_after(command(root, "explore", "--out", out, "--json"), out)


def verified(root):
    """What `moelaws verify` says of the tree; where something is damaged, its exit code is 1."""

    def work():
        try:
            command(root, "verify", "--json")()
        except SystemExit as end:
            if end.code not in (0, 1):
                raise

    return work


def corpus(folder):
    def show():
        from moelaws.corpus.shards import PreparedCorpus

        data = PreparedCorpus.open(folder)
        print(int(data.train.sum()), int(data.validation.sum()), data.token_bytes.sum())
        print(data.validation_starts.tolist(), data.meta["corpus_id"])

    return lambda: end_as(show)


def kept(folder):
    def show():
        from moelaws.training.weights import load

        config, model = load(folder)
        print(config.run_id, [float(p.sum()) for p in model.parameters()])

    return lambda: end_as(show)


@pytest.fixture(scope="session")
def readers(swept):
    """Kind -> (its files, what reads one of them and prints what it makes of it)."""
    root = swept.root
    demo, runs = root / "results/demo", sorted((root / "results/runs").iterdir())
    folder = next((root / "results/corpora").glob("*/meta.json")).parent
    point = ("N=1e4", "D=1e5", "S=0.5")

    def run_file(name):
        return [run / name for run in runs]

    def fit(path):
        return command(root, "eval", "sparsity.loss", *point, "--params", path, "--json")

    loss = demo / "fits/sparsity/loss.json"
    return {
        "table": (
            [demo / "tables/sparsity.parquet"],
            lambda path: command(
                root, "query", "SELECT sum(L), sum(C), max(run_id) FROM sparsity", "--json"
            ),
        ),
        "summary": (
            run_file("summary.json"),
            lambda path: command(root, "show", path.parent.name, "--json"),
        ),
        "collected": (
            [*run_file("summary.json"), *run_file("provenance.json")],
            lambda path: collected(root),
        ),
        "history": (run_file("history.parquet"), printed_table),
        "load": (run_file("load.parquet"), printed_table),
        "documents": (
            run_file("documents.parquet"),
            lambda path: command(
                root, "diff", path.parent.name, runs[path.parent == runs[0]].name, "--json"
            ),
        ),
        "derived": (sorted((demo / "derived/sparsity").glob("*.parquet")), printed_table),
        "fit": ([loss], fit),
        "draws": ([loss.with_suffix(".bootstrap.parquet")], lambda path: fit(loss)),
        "verdicts": (
            [demo / "claims/sparsity.json"],
            lambda path: command(root, "claims", path, "--out", root / "page.md", "--json"),
        ),
        "power": (
            [demo / "power/sparsity.json"],
            lambda path: command(
                *(root, "claims", demo / "claims/sparsity.json", "--power", path),
                *("--out", root / "page.md", "--json"),
            ),
        ),
        "contest": (
            [demo / "contests/sparsity/laws.json"],
            lambda path: command(root, "contests", path, "--out", root / "page.md", "--json"),
        ),
        "record": (
            sorted((demo / "figures/sparsity").glob("*.json")),
            lambda path: command(root, "show", path, "--json"),
        ),
        "cover": (
            sorted(demo.glob("figures/sparsity/*.json")),
            lambda path: command(
                *(root, "cover", path, "--text", root / "README.md"),
                *("--out", root / "cover.rst", "--json"),
            ),
        ),
        "corpus": (
            sorted(folder.iterdir()),
            lambda path: corpus(path.parent),
        ),
        "speed of a table": (
            run_file("history.parquet"),
            lambda path: collected(root),
        ),
        "configuration": (
            run_file("config.json"),
            lambda path: command(root, "query", "SELECT * FROM runs", "--json"),
        ),
        "page": (
            sorted((demo / "figures/sparsity").glob("*.png"))
            + sorted((demo / "figures/sparsity").glob("T*.csv"))
            + [demo / "claims.md", demo / "laws.md", demo / "outlook.md"],
            lambda path: explored(root),
        ),
        "tasks of a text": (
            [folder / name for name in ("validation.bin", "validation_documents.npy", TOKENIZER)],
            lambda path: command(root, "tasks", "held-out", "--corpus", folder, "--json"),
        ),
        "archive": (
            [
                *sorted((demo / "figures/sparsity").iterdir()),
                *(
                    demo / name
                    for name in ("claims.md", "explore.html", "report.rst", "report.html")
                ),
                *run_file("config.json"),
            ],
            lambda path: command(
                root, "archive", "--to", root / "a.zip", "--force", "--set", "studies=sparsity"
            ),
        ),
        "weights": (
            sorted((root / "results/weights").glob("*/*")),
            lambda path: kept(path.parent),
        ),
        "tree": (all_files(root), lambda path: verified(root)),
    }


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


@pytest.mark.parametrize(
    "kind",
    [
        *("table", "summary", "collected", "history", "load", "documents", "derived"),
        *("fit", "draws", "verdicts", "contest", "record", "cover", "corpus", "weights", "power"),
        *("speed of a table", "configuration", "page", "tasks of a text", "archive", "tree"),
    ],
)
def test_damaged_files(readers, kind):
    files, reader = readers[kind]
    assert files
    chance, answers = chance_of("damage", kind), {}
    for number in range(cases(1, 30 if kind == "tree" else 14)):
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
