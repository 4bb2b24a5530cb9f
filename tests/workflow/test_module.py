"""The workflow in the hands of another one, the files by which catalogs find it, and what its
default profile and both files of its environment may say."""

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

import moelaws
from repository import REPOSITORY, copy_repository

NAME = ("-c", "user.name=A", "-c", "user.email=a@b.example")


def jobs(*words, cwd):
    """Rule -> its number of jobs in a dry run."""
    line = [sys.executable, "-m", "snakemake", "-n", *words]
    done = subprocess.run(line, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(re.findall(r"^(\w+) +(\d+)$", done.stdout + done.stderr, re.M))


@pytest.mark.slow
def test_another_workflow_takes_all_rules_from_a_commit(tmp_path):
    """By a git address, in a folder with the configuration alone: the jobs are the same."""
    source, user = tmp_path / "source", tmp_path / "user"
    copy_repository(source)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run(["git", *NAME, *words], cwd=source, check=True, capture_output=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=source, check=True, capture_output=True, text=True
    ).stdout.strip()
    own = jobs(cwd=source)
    assert int(own["total"]) > 50
    assert jobs("-s", "workflow/Snakefile", cwd=source) == own
    (user / "workflow").mkdir(parents=True)
    (source / "config").rename(user / "config")
    page = (REPOSITORY / "config/README.md").read_text()
    text = re.search(r"```python\n(.*?)```", page, re.S)[1]
    place = f'gitfile("{source}", path="workflow/Snakefile", commit="{commit}")'
    text, changed = re.subn(r"github\(.*\)", place, text)
    assert changed == 1
    (user / "workflow/Snakefile").write_text(text)
    assert jobs(cwd=user) == own


def test_rules_and_package_are_of_one_version():
    rules = (REPOSITORY / "workflow/rules/common.smk").read_text()
    assert f'VERSION := "{moelaws.__version__}"' in rules
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project.get("version", moelaws.__version__) == moelaws.__version__


def test_the_catalog_finds_what_it_asks_for():
    usage = yaml.safe_load((REPOSITORY / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["software-stack-deployment"]["conda"] is False
    assert usage["report"] is True
    assert "moelaws" in usage["mandatory-flags"]["desc"]


def test_default_profile_leaves_the_choice_of_machine_to_others():
    """It is always in force and overrides `--profile slurm`, so it may not say where jobs run."""
    profile = yaml.safe_load((REPOSITORY / "profiles/default/config.yaml").read_text())
    taken = {"executor", "jobs", "cores", "local-cores", "retries", "keep-going", "latency-wait"}
    assert not taken & set(profile)
    assert not [key for key in profile if "resources" in key or "slurm" in key]
    # No code among them: one more space in a rule would train every model again.
    assert sorted(profile["rerun-triggers"]) == ["input", "mtime", "params"]


def test_the_conda_environment_is_the_lock_file():
    lock = (REPOSITORY / "envs/cpu.lock").read_text().splitlines()
    pinned = [line for line in lock if line and not line.startswith("#")]
    environment = yaml.safe_load((REPOSITORY / "envs/cpu.yaml").read_text())
    assert environment["dependencies"][-1] == {"pip": pinned}
    assert all("==" in line for line in pinned)
