"""Sources of text by their content, and tokenizers of it."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moelaws.corpus import sources as module
from moelaws.corpus.sources import resolve
from moelaws.corpus.tokenizer import Tokenizer
from moelaws.spec.errors import UserError
from repository import REPOSITORY


def old(folder):
    """Make the files' time stamps old enough to be trusted by the cache."""
    for path in folder.iterdir():
        os.utime(path, (1e9, 1e9))


def test_stdlib_is_sources_and_prose_without_tests_and_parts_packaged_apart(tmp_path):
    sources = resolve("stdlib", tmp_path)
    names = [name for name, _ in sources.files]
    assert sources.name == "stdlib"
    assert names == sorted(names)
    assert {"ast.py", "asyncio/events.py", "pydoc_data/topics.py"} <= set(names)
    forbidden = {"test", "tests", "site-packages", "idlelib", "tkinter", "lib2to3", "__pycache__"}
    assert not [name for name in names if forbidden & set(name.split("/"))]
    assert not [name for name in names if "_sysconfigdata" in name or name == "sitecustomize.py"]
    assert 7e6 < sources.bytes < 12e6
    assert sources.bytes == sum(path.stat().st_size for _, path in sources.files)
    sources.identity()  # all of it is UTF-8


def test_the_lock_pins_each_package_of_the_environment_to_one_version():
    lock = (REPOSITORY / "envs/cpu.lock").read_text().replace("_", "-")
    for name in module.PACKAGES:
        assert len(set(re.findall(rf"^{name}==([^ ;\n]+)", lock, re.I | re.M))) == 1, name
    assert list(module.PACKAGES) == sorted(module.PACKAGES)


def test_environment_is_the_standard_library_and_the_packages(tmp_path):
    small, sources = resolve("stdlib", tmp_path), resolve("environment", tmp_path)
    assert sources.name == "environment"
    assert set(small.files) < set(sources.files)
    names = [name for name, _ in sources.files]
    assert names == sorted(set(names))
    assert {"sympy/core/add.py", "rich/table.py", "asyncio/events.py"} <= set(names)
    assert not [name for name in names if {"..", "test", "tests"} & set(name.split("/"))]
    assert 4e7 < sources.bytes < 6e7


def test_digest_is_of_names_and_contents_wherever_they_lie(texts, tmp_path):
    digest = resolve("*.txt", texts).identity()
    moved = tmp_path / "elsewhere"
    texts.rename(moved)
    both = [str(moved / "[1-3]*.txt"), str(moved / "0*.txt")]
    assert resolve(both, tmp_path).identity() == digest
    (moved / "00.txt").rename(moved / "000.txt")
    renamed = resolve("*.txt", moved).identity()
    assert renamed != digest
    (moved / "000.txt").write_text("other")
    assert resolve("*.txt", moved).identity() not in {digest, renamed}


def test_patterns_that_overlap_name_a_file_once_and_go_into_folders(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "one.txt").write_text("one")
    (tmp_path / "a" / "b" / "two[2].txt").write_text("two")
    both = resolve(["a/**/*.txt", "a/one.txt"], tmp_path)
    assert [name for name, _ in both.files] == ["b/two[2].txt", "one.txt"]
    assert [name for name, _ in resolve("a/b/two[2].txt", tmp_path).files] == ["two[2].txt"]


def test_a_file_rewritten_within_its_time_stamp_is_noticed(tmp_path):
    path, cache = tmp_path / "a.txt", tmp_path / "cache.json"
    path.write_text("one")
    now = time.time()
    os.utime(path, (now, now))
    first = resolve("a.txt", tmp_path).identity(cache)
    path.write_text("two")
    os.utime(path, (now, now))
    assert resolve("a.txt", tmp_path).identity(cache) != first


def test_a_text_that_was_put_in_place_with_its_old_time_is_noticed(texts, tmp_path):
    """As rsync -t and a restored backup do; the size is the same, too."""
    old(texts)
    path, cache = texts / "07.txt", tmp_path / "cache.json"
    first = resolve("*.txt", texts).identity(cache)
    assert str(path) in module._load(cache)
    path.write_text(path.read_text()[::-1])
    old(texts)
    again = resolve("*.txt", texts)
    assert again.identity(cache) == again.identity(None) != first


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"x": 1}', '{"PATH": [1, 2]}', b"\xff"])
def test_a_broken_cache_is_replaced(texts, tmp_path, content):
    old(texts)
    cache = tmp_path / "cache.json"
    if isinstance(content, str):
        content = content.replace("PATH", str(texts / "00.txt")).encode()
    cache.write_bytes(content)
    sources = resolve("*.txt", texts)
    assert sources.identity(cache) == sources.identity(None)
    assert len(module._load(cache)) == 40


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("missing.txt", "missing.txt matches no file"),
        ("*.md", r"\*.md matches no file"),
        ("empty", "no text"),
        (["stdlib", "00.txt"], "stdlib matches no file"),
    ],
)
def test_what_is_not_text_is_named(texts, setting, says):
    (texts / "empty").write_text("")
    with pytest.raises(UserError, match=says):
        resolve(setting, texts)


def test_a_glob_that_never_ends_is_refused(texts):
    for name in ("a", "b"):
        (texts / name).symlink_to(texts)  # 2^40 folders
    with pytest.raises(UserError, match=r"\*\*/x goes into more than 10,000 folders; name fewer"):
        resolve("**/x", texts)


@pytest.mark.parametrize("data", [b"\xff\xfe", "é".encode("latin-1"), "é".encode()[:1]])
def test_text_that_is_not_utf8_is_named(texts, data):
    (texts / "17.txt").write_bytes(b"x" * module.BLOCK + data)
    with pytest.raises(UserError, match=r"17\.txt is not UTF-8"):
        resolve("*.txt", texts).identity()


def test_a_character_across_two_reads_is_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * (module.BLOCK - 1) + "é".encode())
    assert len(resolve("a.txt", tmp_path).identity().digest) == 64


def test_a_vocabulary_that_the_text_cannot_fill_is_refused():
    with pytest.raises(UserError, match=r"finds only 2.. entries; lower vocab_size"):
        Tokenizer.train(["a short text"], 5000)


def test_same_texts_in_any_order_on_any_number_of_threads_give_the_same_tokenizer(tmp_path):
    program = (
        "import os, re, sys; from pathlib import Path\n"
        "from moelaws.corpus.tokenizer import Tokenizer\n"
        "texts = [Path(m.__file__).read_text('utf-8') for m in (re, os)]\n"
        "Tokenizer.train(texts, 400).save(Path(sys.argv[1]))\n"
    )
    alone = {**os.environ, "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    saved = tmp_path / "other.json"
    subprocess.run([sys.executable, "-c", program, saved], env=alone, check=True)
    texts = [Path(os.__file__).read_text("utf-8"), Path(re.__file__).read_text("utf-8")]
    mine = Tokenizer.train(texts, 400)
    mine.save(tmp_path / "mine.json")
    assert saved.read_bytes() == (tmp_path / "mine.json").read_bytes()
    loaded = Tokenizer.load(saved)
    assert loaded.vocab_size == 400
    assert loaded.encode(texts[0]) == mine.encode(texts[0])
