"""Each kind of file that the workflow writes, damaged: no other number ever comes out of it."""

import hashlib
import random

import pytest
from hostile_outcome import CASES, command, judged, outcome

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
    return digest_after(command(root, "make", "runs", "sparsity", "--out", out), out)


def explored(root):
    """The page of all that was made, which also says what it left out."""
    out = root / "page.html"
    return digest_after(command(root, "explore", "--out", out, "--json"), out)


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
            + [demo / "claims.md", demo / "laws.md"],
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
            sorted((root / "results/weights").glob("*/model.safetensors")),
            lambda path: kept(path.parent),
        ),
    }


def flipped(data, chance):
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def cut(data, chance):
    return data[: chance.randrange(len(data))]


def edited(data, chance):
    """A digit changed, as by hand; of a file without any, a bit."""
    digits = [i for i, byte in enumerate(data) if byte in b"0123456789"]
    if not digits:
        return flipped(data, chance)
    place = chance.choice(digits)
    return data[:place] + bytes([48 + (data[place] - 47) % 10]) + data[place + 1 :]


def noise(data, chance):
    return chance.randbytes(chance.choice((0, 1, 64, len(data))))


def foreign(data, chance):
    """JSON that holds nothing of what the file should."""
    return chance.choice((b"{}", b"[]", b"7", b"null", b'"x"', b'{"made_of": 1, "study": {}}'))


DAMAGE = (flipped, flipped, flipped, cut, edited, noise, foreign)


@pytest.mark.parametrize(
    "kind",
    [
        *("table", "summary", "collected", "history", "load", "documents", "derived"),
        *("fit", "draws", "verdicts", "contest", "record", "cover", "corpus", "weights"),
        *("speed of a table", "configuration", "page", "tasks of a text", "archive"),
    ],
)
def test_damaged_files(readers, kind):
    files, reader = readers[kind]
    assert files
    chance = random.Random(kind)
    answers = {}
    for _ in range(max(1, CASES // 12)):
        path, damage = chance.choice(files), chance.choice(DAMAGE)
        data = path.read_bytes()
        if path not in answers:
            whole = outcome(reader(path))
            assert whole.code == 0, whole.stderr
            answers[path] = whole.stdout
        path.write_bytes(damage(data, chance))
        try:
            judged(f"{path} {damage.__name__}", outcome(reader(path)), answers[path])
        finally:
            path.write_bytes(data)


def test_a_file_of_its_kind_in_its_place(readers):
    """That of another study, entry or run: the answer is the same, or a refusal."""
    chance = random.Random(1)
    for kind in sorted(readers):
        files, reader = readers[kind]
        for _ in range(max(1, CASES // 100)):
            path = chance.choice(files)
            others = [p for p in files if p.suffix == path.suffix and p != path]
            if not others:
                continue
            other, data = chance.choice(others), path.read_bytes()
            whole = outcome(reader(path))
            path.write_bytes(other.read_bytes())
            try:
                judged(f"{other} as {path}", outcome(reader(path)), whole.stdout)
            finally:
                path.write_bytes(data)


def test_a_file_of_another_kind_in_its_place(readers):
    chance = random.Random(0)
    kinds = sorted(readers)
    for kind in kinds:
        files, reader = readers[kind]
        path = chance.choice(files)
        others = [k for k in kinds if path.suffix not in {p.suffix for p in readers[k][0]}]
        other = chance.choice(readers[chance.choice(others)][0])
        data = path.read_bytes()
        path.write_bytes(other.read_bytes())
        try:
            judged(f"{other} as {path}", outcome(reader(path)), "")
        finally:
            path.write_bytes(data)
