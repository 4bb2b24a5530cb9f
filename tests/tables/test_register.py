"""The register of public runs: each mapping says all, and each table is what it says."""

import hashlib
import shutil
from pathlib import Path

import pytest
import yaml

from command_line import call, printed
from file_server import serving
from moelaws.files.parquet import read_origin
from moelaws.spec.errors import UserError
from moelaws.tables.parquet import read_study
from moelaws.tables.register import FOLDER, register
from repository import REPOSITORY

REGISTER = register(REPOSITORY)
RUNS = "name,loss,steps\na,3.0,1000\nb,2.5,2000\n"
TOKENS = "name,tokens\nb,2e9\na,1e9\n"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def ours(tmp_path, monkeypatch):
    """The current folder, whose register has the table ``ours`` of the files of ``server``."""
    monkeypatch.chdir(tmp_path)
    with serving({"runs.csv": RUNS.encode(), "tokens.csv": TOKENS.encode()}) as server:
        other = {"file": "tokens.csv", "url": f"{server.address}/pinned/tokens.csv"}
        origin = {"file": "runs.csv", "url": f"{server.address}/pinned/runs.csv"}
        origin |= {"sha256": sha256(RUNS), "others": [other | {"sha256": sha256(TOKENS)}]}
        mapping = {
            "study": "ours",
            "origin": origin | {"licence": "CC0-1.0", "attribution": "Nobody, 2026."},
            "public": {"what": "two runs", "losses": "L on theirs", "runs": 2, "C": [6e18, 12e18]}
            | {"assumed": ["The sun shines."]},
            "sql": "SELECT name AS run_id, 'completed' AS status, loss AS L, 6e9 * tokens AS C, "
            "tokens AS D FROM source JOIN source2 USING (name) ORDER BY source._row",
        }
        FOLDER.mkdir(parents=True)
        (FOLDER / "ours.yaml").write_text(yaml.safe_dump(mapping))
        shutil.copy(REPOSITORY / FOLDER / "wandb.yaml", FOLDER)
        server.mapping = mapping
        yield server


def test_a_name_fetches_files_and_makes_the_table(ours):
    text = printed("import", "ours")
    assert "results/imported/ours.parquet: 2 runs" in text
    assert "assumed: The sun shines." in text
    frame = read_study(Path("results/imported/ours.parquet"))
    assert frame["D"].tolist() == [1_000_000_000, 2_000_000_000]
    assert ours.asked == ["/pinned/runs.csv", "/pinned/tokens.csv"]
    files = Path("results/imported/files/ours")
    assert (files / "runs.csv").read_text() == RUNS
    printed("import", "ours", "--out", "again.parquet")  # what is here is not fetched again
    assert len(ours.asked) == 2
    assert Path("again.parquet").is_file()
    (files / "tokens.csv").write_text("half a fi")  # and what is not whole is
    printed("import", "ours")
    assert ours.asked[2:] == ["/pinned/tokens.csv"]


def test_a_copy_stands_in_for_the_addresses(ours):
    Path("copies").mkdir()
    Path("copies/runs.csv").write_text(RUNS)
    Path("copies/tokens.csv").write_text(TOKENS)
    printed("import", "ours", "--from", "copies")
    assert not ours.asked
    printed("import", "ours", "--from", f"{ours.address}/mirror/")
    assert ours.asked == ["/mirror/runs.csv", "/mirror/tokens.csv"]
    with pytest.raises(UserError, match=r"copies/runs\.csv is one file, and the mapping is of"):
        call("import", "ours", "--from", "copies/runs.csv")
    with pytest.raises(UserError, match="--from is 'none'; there is no such file or folder"):
        call("import", "ours", "--from", "none")


def test_a_file_without_a_known_digest_is_kept_once_it_was_read(ours, ended):
    for file in (ours.mapping["origin"], *ours.mapping["origin"]["others"]):
        del file["sha256"]
    ours.mapping["origin"]["url"] = ours.mapping["origin"]["url"].replace("//", "//me:secret@")
    (FOLDER / "ours.yaml").write_text(yaml.safe_dump(ours.mapping))
    page = {"runs.csv": b"<html>login</html>", "tokens.csv": TOKENS.encode()}
    with serving(page) as login:
        code, _, error = ended("import", "ours", "--from", f"{login.address}/")
    assert code == 2
    assert "has one column alone" in error
    assert not list(Path("results").rglob("*.csv"))
    said = printed("import", "ours", "--json")
    assert ours.asked == ["/pinned/runs.csv", "/pinned/tokens.csv"]
    assert "secret" not in said + str(read_origin(Path("results/imported/ours.parquet")))


@pytest.mark.parametrize(
    ("mirror", "reason"),
    [
        ("ftp", "'ftp://runs.csv/' does not begin with http:// or https://"),
        ("gone", "the server answers 404"),
        ("cut", "the transfer was cut"),
        ("wrong", "the SHA-256 of what is there is"),
    ],
)
def test_what_fails_says_where_the_file_is_and_where_to_put_it(ours, mirror, reason, ended):
    wrong = {} if mirror == "gone" else {"runs.csv": (RUNS + "c,2,3000\n").encode()}
    with serving(wrong) as broken:
        code, out, error = ended("import", "ours", "--from", f"{broken.address}/{mirror}")
    assert (code, out) == (2, "")
    assert reason in error
    assert f"Get runs.csv from {ours.address}/pinned/runs.csv and put it at " in error
    assert "results/imported/files/ours/runs.csv, or say where it is: " in error
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert not [path for path in Path("results").rglob("*") if path.is_file()]


def test_a_password_is_never_printed(ours, ended):
    code, out, error = ended("import", "ours", "--from", "https://me:secret@localhost/x/")
    assert code == 2
    assert "'https://localhost/x/runs.csv' cannot be fetched: the address holds a pass" in error
    assert "secret" not in out + error


@pytest.mark.parametrize("name", REGISTER)
def test_a_mapping_says_where_its_files_are_for_good(name):
    mapping = REGISTER[name]
    assert mapping.public.assumed
    for file in mapping.origin.files:
        _, _, host, _, _, commit, *_ = file.url.split("/")
        assert host == "raw.githubusercontent.com"
        assert len(bytes.fromhex(commit)) == 20
        pinned = any("digest" in sentence for sentence in mapping.public.assumed)
        assert file.sha256 or pinned
    assert mapping.study == name.replace("-", "_") or name == "steplaw-moe"
