"""Mistakes on the command line: where --out cannot be, what was misspelt, what is no number."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import call, printed
from moelaws import cli as cli_module
from moelaws.cli.common import check_out
from moelaws.spec.errors import UserError
from repository import REPOSITORY

MAPPING = ("--map", "N=params", "--map", "D=tokens", "--map", "L=loss")
FIT = ("fit", REPOSITORY / "docs/losses.csv", "--law", "chinchilla", *MAPPING)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("fit.txt", r"--out is '.*fit.txt'; its name must end in .json"),
        ("folder.json", "a folder; give the name of a file"),
        ("file/a/fit.json", r"but .*file is no folder"),
        ("locked/a/fit.json", r"but the folder .*locked cannot be written to"),
    ],
)
def test_an_out_that_cannot_be_written_is_refused_before_the_work(
    out, message, tmp_path, monkeypatch
):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "locked").mkdir()
    (tmp_path / "file").touch()
    # As a user who is not root finds it.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked")
    with pytest.raises(UserError, match=message):
        check_out(tmp_path / out, ".json")
    for words in (
        ("fit", tmp_path / "file", "--law", "chinchilla"),
        ("compare", tmp_path / "file", "--laws", "chinchilla,wang.loss"),
    ):
        with pytest.raises(UserError, match=message):  # and not: this is no table
            call(*words, "--out", tmp_path / out)


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "none.csv", "--law", "chinchilla"),
        ("compare", "none.csv", "--laws", "chinchilla,wang.loss"),
        ("make", "derived", "sparsity", "optima", "--table", "none.csv"),
    ],
    ids=lambda words: words[0],
)
def test_a_missing_file_is_refused_before_libraries_are_loaded(words):
    code = "import sys; from moelaws.cli import main; main()"
    loaded = "[m for m in ('torch', 'scipy', 'pandas', 'pyarrow') if m in sys.modules]"
    code = f"import atexit; atexit.register(lambda: print({loaded})); {code}"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "[]\n")
    assert len(done.stderr.splitlines()) == 1
    assert "none.csv" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit",), "Missing argument 'TABLE'. (moelaws fit --help tells more)"),
        (("runs",), "there is no folder "),
        (("query", "SELECT 1 FROM sparsity"), "sparsity does not exist!; allowed is one SELECT"),
        (("grid", "config/studies/nope.yaml"), "config/studies/nope.yaml: no such file\n"),
        (("make", "fits", "sparsity", "los"), "'sparsity' has no fit 'los'; did you mean loss?"),
        (("make", "claims", "sparsity"), "tables/sparsity.parquet: no such table; run the workfl"),
        # A zero that was given is not forgotten
        ((*FIT, "--sample", "0"), "protocol: sample is 0; it must be at least 1"),
        # A number that cannot be meant
        (("eval", "chinchilla", "N=1_000", "D=2e10"), "'N=1_000' is not VAR=VALUE"),
        (("plan", "sparsity", "--noise", "0"), "--noise is 0, but losses vary between trainings"),
        (("advise", "--compute", "1_0"), "'1_0' is no number above 1e-30"),
        (("next", "sparsity", "--target", "1e-320"), "'1e-320' is no budget, such as C=1e21"),
        (("grid", "--set", "studies=[]"), "studies is []; it must be all or a list of 1 or more"),
        (("fti", "runs.csv"), "No such command 'fti'. Did you mean 'fit'?"),
    ],
)
def test_a_mistake_is_one_line(project_folder, ended, words, message):
    code, _, text = ended(*words)
    assert (code, text.count("\n")) == (2, 1)
    assert text.startswith("moelaws: ")
    assert message in text


def test_an_unknown_law_is_refused_before_it_is_trained_for(project_folder):
    path = project_folder / "config/studies/allocation.yaml"
    path.write_text(path.read_text().replace("law: allocation.loss", "law: allocation.los", 1))
    with pytest.raises(UserError, match=r"unknown law 'allocation\.los'"):
        call("grid", "allocation")


def test_a_reader_who_has_seen_enough_is_no_failure():
    """A shell's own programs end with 128 and SIGPIPE's number, too."""
    words = [sys.executable, "-m", "moelaws", "laws"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listing:
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode == 141


def test_memory_that_does_not_suffice_is_no_traceback(ended, monkeypatch):
    def fails(**options):
        raise MemoryError("Unable to allocate 47.7 GiB")

    monkeypatch.setattr(cli_module, "cli", fails)
    what = "not enough memory: Unable to allocate 47.7 GiB; ask for less at a time"
    assert ended("fit") == (2, "", f"moelaws: {what}\n")


def test_a_broken_configuration_is_no_matter_to_a_command_that_does_not_need_it(
    tmp_path, monkeypatch
):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("colour: red\n")
    monkeypatch.chdir(tmp_path)
    assert printed(*FIT, "--bootstrap", "2", "--sample", "5")
    with pytest.raises(UserError, match="unknown key colour"):  # where it may hold the law
        call("laws", "ours.law")


def test_a_closed_standard_input_is_an_empty_one():
    words = [sys.executable, "-m", "moelaws", "train", "-"]
    ended = subprocess.run(words, preexec_fn=lambda: os.close(0), capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("moelaws: standard input is not valid JSON")
    assert len(ended.stderr.splitlines()) == 1


def test_an_interrupt_that_comes_in_a_finalizer_ends_the_command():
    """Python reports it, ignores it and goes on."""
    code = """
import signal, time
from moelaws import cli

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def command(**_):
    Finalized()
    time.sleep(30)

cli.cli = command
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "moelaws: interrupted\n")
