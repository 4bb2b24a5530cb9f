"""A text of some 217 MB in 12,000 documents, from eight packages of Debian 12.

    python benchmarks/debian_text.py text [--packages FOLDER]

Manuals, sources and a dictionary are public, but their licences keep them out of this repository.
The packages come by ``apt-get download``, or lie in FOLDER as ``*.deb`` already. Each source has
a folder below ``text``; with a vocabulary of 4,096 they have 67 million tokens to train on
(docs/gpus.md). Another release of a package gives a few other documents, and another corpus.

A file is a document, and the dictionary is cut between entries into pieces of some 48 kB. Left out
are files that are not UTF-8, are shorter than 400 bytes or longer than 900 kB, consist of tables
for the most part, or repeat themselves; translations, tests and generated sources; and exact
copies.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

# The source's name: its package, the folder in it, the files of that folder, and what is left out.
TREES = {
    "linux": (
        "linux-doc-6.1",
        "usr/share/doc/linux-doc-6.1/html/_sources",
        ["*.rst.txt"],
        r"^translations/",
    ),
    "python-doc": (
        "python3.11-doc",
        "usr/share/doc/python3.11/html/_sources",
        ["*.rst.txt"],
        r"(?!)",
    ),
    "perl": ("perl-doc", "usr/share/perl", ["*.pod"], r"perl(cn|jp|ko|tw)\.pod"),
    "git": ("git-doc", "usr/share/doc/git-doc", ["*.txt", "*.txt.gz"], r"(?!)"),
    "emacs": (
        "emacs-el",
        "usr/share/emacs",
        ["*.el.gz"],
        r"/(leim|obsolete|cedet|term)/|-tests?\.el|loaddefs|ucs-normalize|/language/",
    ),
    "go": (
        "golang-1.19-src",
        "usr/share/go-1.19/src",
        ["*.go"],
        r"_test\.go|testdata|^vendor/|cmd/vendor|/gen|zerr|zsys|rewrite[A-Z0-9]|opGen|tables\.go|_string\.go",
    ),
}
JAVA = "usr/lib/jvm/openjdk-17/lib/src.zip"  # of openjdk-17-source
JAVA_MODULES = (
    r"java\.(base|sql|net\.http|logging|prefs|management|naming)"
    r"|jdk\.(compiler|jshell|jfr|httpserver|net|javadoc)"
)
JAVA_GENERATED = (
    r"/(X-|[A-Z][a-z]+To[A-Z]|Heap.*Buffer|Direct.*Buffer|.*VarHandle|resources/|.*Messages"
    r"|.*_[a-z]{2}(_[A-Z]{2})?\.java)"
)
DICTIONARY = "usr/share/dictd/gcide.dict.dz"  # of dict-gcide
PIECE = 48_000  # bytes of the dictionary
PACKAGES = [package for package, *_ in TREES.values()] + ["openjdk-17-source", "dict-gcide"]


def files_of(root: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yields each candidate of the unpacked packages: its source, its name and its bytes."""
    for source, (_, folder, patterns, left_out) in TREES.items():
        for pattern in patterns:
            for path in sorted((root / folder).rglob(pattern)):
                name = path.relative_to(root / folder).as_posix()
                if path.is_file() and not path.is_symlink() and not re.search(left_out, name):
                    data = path.read_bytes()
                    if path.suffix == ".gz":
                        data, name = gzip.decompress(data), name.removesuffix(".gz")
                    yield source, name, data
    with zipfile.ZipFile(root / JAVA) as java:
        for name in sorted(java.namelist()):
            wanted = re.match(rf"({JAVA_MODULES})/.*\.java$", name)
            if wanted and not re.search(JAVA_GENERATED, name):
                yield "java", name, java.read(name)
    words = gzip.decompress((root / DICTIONARY).read_bytes())
    piece: list[bytes] = []
    number = 0
    for entry in re.split(rb"\n(?=\S[^\n]* \\)", words):
        piece.append(entry)
        if sum(map(len, piece)) > PIECE:
            yield "gcide", f"{number:04}.txt", b"\n".join(piece) + b"\n"
            piece, number = [], number + 1
    yield "gcide", f"{number:04}.txt", b"\n".join(piece) + b"\n"


def is_text(data: bytes) -> bool:
    """Returns whether a file's bytes are prose or code, neither tables nor repetitions."""
    if not 400 <= len(data) <= 900_000:
        return False
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    words = sum(map(len, re.findall(r"[A-Za-z]{2,}", text)))
    if words + text.count(" ") + text.count("\n") < 0.7 * len(text):
        return False
    return 9 * len(zlib.compress(data, 1)) >= len(data)


def write(root: Path, out: Path) -> dict[str, tuple[int, int]]:
    """Writes the documents below ``out``; returns how many each source has, and their bytes."""
    seen: set[bytes] = set()
    found: dict[str, tuple[int, int]] = {}
    for source, name, data in files_of(root):
        digest = hashlib.sha256(data).digest()
        if not is_text(data) or digest in seen:
            continue
        seen.add(digest)
        path = out / source / re.sub(r"[^A-Za-z0-9._-]+", "_", name)
        if path.exists():
            path = path.with_name(f"{digest.hex()[:6]}_{path.name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        count, size = found.get(source, (0, 0))
        found[source] = (count + 1, size + len(data))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument("--packages", type=Path, help="where the packages lie as *.deb")
    given = parser.parse_args()
    if given.out.exists():
        parser.error(f"{given.out} is there already; name a new folder")
    with tempfile.TemporaryDirectory() as folder:
        packages = (given.packages or Path(folder)).absolute()
        if given.packages is None:
            subprocess.run(["apt-get", "download", *PACKAGES], cwd=packages, check=True)
        for package in PACKAGES:
            (file,) = packages.glob(f"{package}_*.deb")
            subprocess.run(["dpkg-deb", "-x", file, f"{folder}/unpacked"], check=True)
        found = write(Path(folder) / "unpacked", given.out)
    for source, (count, size) in sorted(found.items()):
        print(f"{source:<12} {size / 1e6:7.1f} MB {count:6} documents")
    count, size = map(sum, zip(*found.values(), strict=True))
    print(f"{'all':<12} {size / 1e6:7.1f} MB {count:6} documents")


if __name__ == "__main__":
    main()
