"""The Slurm profile as Snakemake reads it, with and without a site file."""

import shutil

import pytest
from configargparse import ConfigFileParserException
from snakemake.profiles import ProfileConfigFileParser

from repository import REPOSITORY


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """Reads the profile with a site file of this content; None for no such file."""
    folder = tmp_path / "profiles/slurm"
    folder.mkdir(parents=True)
    shutil.copy(REPOSITORY / "profiles/slurm/config.yaml", folder)
    monkeypatch.chdir(tmp_path)

    def read(site):
        if site is not None:
            (folder / "site.yaml").write_text(site)
        with (folder / "config.yaml").open() as stream:
            return dict(ProfileConfigFileParser().parse(stream))

    return read


def test_the_site_file_adds_and_replaces(profile):
    site = "default-resources: {slurm_partition: long, runtime: 30}\njobs: 7\nmax_minutes: 9\n"
    settings = profile(site)
    assert settings["default-resources"] == ["mem_mb=2000", "runtime=30", "slurm_partition=long"]
    assert settings["jobs"] == "7"
    assert settings["retries"] == profile(None)["retries"]
    assert "max_minutes" not in settings  # Snakemake has no such option


def test_the_example_can_be_copied(profile):
    settings = profile((REPOSITORY / "profiles/slurm/site.example.yaml").read_text())
    assert "slurm_account=my_project" in settings["default-resources"]
    assert "train:slurm_partition=gpu" in settings["set-resources"]


@pytest.mark.parametrize("text", ["jobs: [", "- 1", ""])
def test_a_broken_site_file_is_named(profile, text):
    with pytest.raises(ConfigFileParserException, match=r"profiles/slurm/site\.yaml[: ]"):
        profile(text)
