import os
import re
import time

import pytest

from moelaws.corpus import sources as module
from moelaws.corpus.sources import resolve
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


def normalised(name):
    return re.sub("[-_.]+", "-", name.lower())


def pins(lock):
    """Returns package -> the versions that a file of envs/ pins, whatever the machine."""
    versions = {}
    for line in (REPOSITORY / "envs" / lock).read_text().splitlines():
        if match := re.match(r"([\w.-]+)==([^ ;]+)", line):
            versions.setdefault(normalised(match[1]), set()).add(match[2])
    return versions


def test_the_lock_pins_each_package_of_the_environment_to_one_version():
    pinned = pins("cpu.lock")
    assert all(len(pinned[name]) == 1 for name in module.PACKAGES)
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


@pytest.mark.slow
def test_the_environment_is_utf8(tmp_path):
    assert len(resolve("environment", tmp_path).identity().digest) == 64  # it reads 47 MB


def test_a_package_of_the_environment_that_lacks_files_is_named(tmp_path, monkeypatch):
    info = tmp_path / "half-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: half\nVersion: 1.0\n")
    (info / "RECORD").write_text("half/gone.py,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    for package, reason in (("half", "gone.py is missing"), ("nowhere", "no file of it is listed")):
        monkeypatch.setattr(module, "PACKAGES", (package,))
        with pytest.raises(UserError, match=f"{package} is not installed whole.*{reason}"):
            resolve("environment", tmp_path)


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


def test_warm_digest_reads_no_file(texts, tmp_path, monkeypatch):
    old(texts)
    sources = resolve("*.txt", texts)
    digest = sources.identity(tmp_path / "cache.json")
    assert digest == sources.identity(None)
    read = []
    honest = module._text_digest
    monkeypatch.setattr(module, "_text_digest", lambda path: read.append(path) or honest(path))
    assert resolve("*.txt", texts).identity(tmp_path / "cache.json") == digest
    assert read == []
    (texts / "07.txt").write_text("new text")
    assert resolve("*.txt", texts).identity(tmp_path / "cache.json") != digest
    assert read == [texts / "07.txt"]


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


def test_a_cache_that_cannot_be_written_is_no_error(texts, tmp_path):
    old(texts)
    (tmp_path / "file").write_text("")
    sources = resolve("*.txt", texts)
    assert sources.identity(tmp_path) == sources.identity(None)  # a folder is there
    assert sources.identity(tmp_path / "file" / "cache.json") == sources.identity(None)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("missing.txt", "missing.txt does not exist"),
        (["00.txt", "gone.txt"], "gone.txt does not exist"),
        ("*.md", r"\*.md matches no file"),
        (".", r"\. is a folder; name its text files, such as \./\*\*/\*.txt"),
        ("empty", "no text"),
        ([], "write stdlib, environment, or paths or globs"),
        (None, "write stdlib, environment, or paths or globs"),
        ([3], "write stdlib, environment, or paths or globs"),
        (["stdlib", "00.txt"], "stdlib cannot be mixed"),
        (["00.txt", "environment"], "environment cannot be mixed"),
    ],
)
def test_what_is_not_text_is_named(texts, setting, says):
    (texts / "empty").write_text("")
    with pytest.raises(UserError, match=says):
        resolve(setting, texts)


@pytest.mark.parametrize("data", [b"\xff\xfe", "é".encode("latin-1"), "é".encode()[:1]])
def test_text_that_is_not_utf8_is_named(texts, data):
    (texts / "17.txt").write_bytes(b"x" * module.BLOCK + data)
    with pytest.raises(UserError, match=r"17\.txt is not UTF-8"):
        resolve("*.txt", texts).identity()


def test_a_character_across_two_reads_is_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * (module.BLOCK - 1) + "é".encode())
    assert len(resolve("a.txt", tmp_path).identity().digest) == 64
