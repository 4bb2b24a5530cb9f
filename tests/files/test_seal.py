"""What is on disk is what was written: a changed bit is refused, never read as another number."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from docutils.core import publish_parts
from hypothesis import given
from hypothesis import strategies as st

from moelaws.files import seal
from moelaws.files.atomic import read_json, read_page, write_json, write_page
from moelaws.records.tensors import write_tensors
from moelaws.spec.errors import UserError
from moelaws.tables.column import Column
from moelaws.tables.parquet import read_table, write_table
from moelaws.training.columns import write_columns
from repository import REPOSITORY

COLUMNS = (
    Column("run_id", "string", "the run"),
    Column("L", "float", "loss", "nats/token"),
    Column("E", "int", "experts", "experts"),
)
ROWS = pd.DataFrame({"run_id": ["a", "b", "c"], "L": [3.25, 3.5, 3.0], "E": [1, 8, 64]})
SUMMARY = {"status": "completed", "loss": 3.25, "history": [1.5, 2.5], "name": "größe"}


def write_summary(path):
    write_json(path, SUMMARY)


def write_study(path):
    write_table(ROWS, COLUMNS, path, {"study": "sparsity"}, made_of={"runs": {"a": "0" * 64}})


def write_history(path):
    steps = np.arange(40)
    about = {"step": ("steps", "updates"), "loss": ("nats/token", "training loss")}
    write_columns(path, about, {"step": steps, "loss": 8 / (1 + steps)})


def content(path):
    return json.dumps(read_json(path)) if path.suffix == ".json" else read_table(path).to_json()


FILES = {
    "summary.json": write_summary,
    "study.parquet": write_study,
    "history.parquet": write_history,
}


@pytest.fixture(scope="module", params=FILES)
def written(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("sealed") / request.param
    FILES[request.param](path)
    return path, path.read_bytes(), content(path)


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(-1, 7))
def test_a_flipped_bit_or_a_cut_never_changes_a_number(written, place, bit):
    path, data, before = written
    damaged, at = bytearray(data), int(place * len(data))
    if bit < 0:
        del damaged[at:]
    else:
        damaged[at] ^= 1 << bit
    path.write_bytes(damaged)
    if seal.inspect(path)[0] == "damaged":  # so what names its digest refuses it too
        with pytest.raises(seal.DamagedError, match=path.name):
            seal.digest(path)
    try:
        after = content(path)
    except UserError:
        return
    finally:
        path.write_bytes(data)
    assert bit >= 0
    assert after == before  # it stood in the words that announce the seal


def test_the_digest_is_of_the_bytes_with_zeros_for_its_digits(written):
    path, data, _ = written
    own = seal.digest(path)
    assert data.count(own.encode()) == 1
    assert hashlib.sha256(data.replace(own.encode(), b"0" * 64)).hexdigest() == own
    assert seal.inspect(path) == ("whole", own)
    FILES[path.name](path)
    assert path.read_bytes() == data  # the same content gives the same bytes


WORDS = f"sha256-of-this-file:{'a' * 64}"


def test_the_seals_own_words_in_data_mean_nothing(tmp_path):
    """A cell, a name, a note or a text that begins with them is data like any other."""
    table, record = tmp_path / "t.parquet", tmp_path / "r.json"
    columns = (Column("run_id", "string", f'"seal":"{WORDS}"', WORDS), *COLUMNS[1:])
    rows = ROWS.assign(run_id=[WORDS, f"seal{WORDS}", f"\x18\x04seal\x18T{WORDS}"])
    write_table(rows, columns, table, {"study": "x", WORDS: WORDS}, made_of={WORDS: WORDS})
    write_json(record, {"L": WORDS, WORDS: {"seal": WORDS}})
    page = tmp_path / "page.md"
    write_page(page, f"# A page\n<!-- {WORDS} -->\n\nEnd")
    tensors = {f'"seal":"{WORDS}': torch.ones(1)}
    write_tensors(tmp_path / "w.safetensors", tensors, {seal.KEY: seal.BLANK, "config": WORDS})
    assert read_table(table, columns).equals(rows)
    assert read_json(record) == {"L": WORDS, WORDS: {"seal": WORDS}}
    assert read_page(page) == f"# A page\n<!-- {WORDS} -->\n\nEnd\n"
    assert {seal.inspect(path)[0] for path in tmp_path.iterdir()} == {"whole"}


@pytest.mark.parametrize("suffix", [".md", ".html", ".rst", ".jsonl", ".txt"])
def test_a_page_keeps_its_text_and_a_changed_one_is_refused(tmp_path, suffix):
    path = tmp_path / f"page{suffix}"
    for text in ("", "a", "a\n\nb\n", "größe\n" * 100):
        write_page(path, text)
        assert read_page(path).strip() == text.strip()
        if suffix == ".rst":
            assert "\n.. sha256" not in publish_parts(path.read_text(), writer="html")["body"]
    sealed = suffix != ".txt"
    assert seal.inspect(path)[0] == ("whole" if sealed else "unverified")
    path.write_bytes(path.read_bytes().replace(b"e\ng", b"e\nG", 1))
    if sealed:
        with pytest.raises(seal.DamagedError, match=path.name):
            read_page(path)


def write_weights(path):
    write_tensors(path, {"w": torch.ones(1)}, {seal.KEY: seal.blank(path)})


RUN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("write", "place", "other"),
    [
        (write_study, "demo/tables/a.parquet", "gpu/tables/a.parquet"),
        (write_summary, f"demo/fits/a/{'long_' * 12}.json", "demo/simulated/fits/a/loss.json"),
        (write_summary, "mine/fits/a/loss.json", "demo/fits/a/loss.json"),
        (lambda path: write_page(path, "a"), "demo/claims.md", "demo/laws.md"),
        (write_summary, "demo/drawn/a/F1.json", "demo/figures/a/F2.json"),
        (write_summary, f"runs/{RUN}/provenance.json", f"runs/{'f' * 16}/provenance.json"),
        (write_weights, f"weights/{RUN}/m.safetensors", f"weights/{'f' * 16}/m.safetensors"),
    ],
)
def test_a_file_in_the_place_of_another_is_refused(tmp_path, monkeypatch, write, place, other):
    """Also in a tier of one's own, which config/tiers declares."""
    monkeypatch.chdir(tmp_path)
    Path("config/tiers").mkdir(parents=True)
    Path("config/tiers/mine.yaml").touch()
    path, swapped, own = (tmp_path / name for name in (place, other, "my" + Path(place).suffix))
    for file in (path, swapped, own):
        file.parent.mkdir(parents=True, exist_ok=True)
    write(path)
    digest = seal.digest(path)
    for copy in (swapped, own):
        copy.write_bytes(path.read_bytes())
    assert seal.inspect(own) == ("whole", digest)
    assert seal.inspect(swapped) == ("damaged", digest)
    with pytest.raises(seal.DamagedError, match=f"is {place.replace('drawn', 'figures')}. To make"):
        seal.check(swapped)


def test_a_record_beside_a_file_knows_its_digest(tmp_path):
    figure, table = tmp_path / "F1.png", tmp_path / "F1.csv"
    figure.write_bytes(b"picture")
    table.write_text("x,y\n1,2\n")
    write_json(tmp_path / "F1.json", {"files": seal.digests([figure])})
    assert [seal.inspect(path)[0] for path in (figure, table)] == ["whole", "unverified"]
    figure.write_bytes(b"Picture")
    with pytest.raises(seal.DamagedError, match=r"F1\.png"):
        seal.read(figure)
    (tmp_path / "F1.json").write_text('{"files": {"F1.png": "of another program"}}')
    assert seal.read(figure) == b"Picture"


# Modules that open files by other ways than ``seal.read``, ``seal.check`` and ``read_bytes``, and
# what it is that they read: nothing of it is a file that moelaws wrote, or it was checked before.
OPENERS = {
    "spec/from_disk.py": "it is the way",
    "spec/from_toml.py": "tables of the package",
    "files/seal.py": "it is the way",
    "files/atomic.py": "the draft of a page",
    "files/parquet.py": "what ``seal.read`` returned",
    "files/download.py": "what it writes",
    "files/lock.py": "folders, to lock them",
    "files/leftovers.py": "/proc",
    "gpus/listing.py": "locks of GPUs, which hold nothing",
    "records/memory.py": "/proc",
    "records/provenance.py": "/proc",
    "records/code.py": "Python's source",
    "records/progress.py": "the ends of logs",
    "records/tensors.py": "weights that were checked",
    "training/checkpoint.py": "weights that were checked",
    "training/pool.py": "logs",
    "corpus/documents.py": "a user's text, which is hashed first",
    "corpus/rows.py": "rows of a data set as they come",
    "corpus/sources.py": "a user's text, which it hashes",
    "corpus/prepare.py": "what it writes",
    "corpus/shards.py": "shards that were checked",
    "tables/foreign.py": "what ``seal.read`` returned",
    "tasks/olmo.py": "files of a package",
    "exports/tensorboard.py": "the log of a run, and what it writes",
    "exports/hf/card.py": "the package's own template",
    "exports/dataset.py": "the package's own template, and what it writes",
    "claims/artifact.py": "the package's own template",
    "explore/page.py": "templates of the package",
    "cli/__init__.py": "the package's own list of commands; /dev/null, in place of closed streams",
    "workflow/jobs.py": "specifications, which it writes and compares",
    "tables/locked.py": "the memory that this process takes",
    "workflow/archive.py": "a ZIP file with a digest of each entry, and the package's template",
}
OPENING = (
    r"(?<![.\w])open\(|(?<!PreparedCorpus)(?<!Image)\.open\(|\.read_(text|bytes|csv|parquet)\("
    r"|safe_open\(|ZipFile\(|np\.(load|memmap|fromfile|genfromtxt)\(|pq\.(read_\w+|ParquetFile)"
)


def test_every_other_way_to_read_a_file_is_known():
    package, found = REPOSITORY / "src/moelaws", set()
    for path in package.rglob("*.py"):
        if re.search(OPENING, path.read_text("utf-8")):
            found.add(path.relative_to(package).as_posix())
    assert found == OPENERS.keys()


def test_files_of_before_and_of_others_are_read_as_they_are(tmp_path):
    old, foreign = tmp_path / "summary.json", tmp_path / "table.parquet"
    old.write_text(json.dumps(SUMMARY))
    ROWS.to_parquet(foreign)
    assert read_json(old) == SUMMARY
    assert len(read_table(foreign)) == 3
    assert [seal.inspect(path)[0] for path in (old, foreign)] == ["unverified", "unverified"]
    (tmp_path / "empty.json").touch()
    with pytest.raises(UserError, match="is not valid JSON"):
        read_json(tmp_path / "empty.json")


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("runs/0123456789abcdef/summary.json", "moelaws runs --retry 0123456789abcdef"),
        ("demo/tables/sparsity.parquet", "snakemake --cores all --force"),
        ("elsewhere/mine.json", "run the command that wrote it"),
    ],
)
def test_a_damaged_file_says_what_it_is_and_how_it_is_made_again(tmp_path, place, says):
    path = tmp_path / place
    write_json(path, {"L": 3.25})
    path.write_text(path.read_text().replace("3.25", "3.15"))
    with pytest.raises(UserError, match="is damaged: it is not what moelaws wrote") as error:
        read_json(path)
    assert says in str(error.value)
