"""The published runs of Clark et al. 2022: what the shipped table holds, and that it is theirs."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from moelaws.tables.foreign import read_any
from moelaws.tables.imported import import_table
from moelaws.tables.parquet import column_metadata, notes, read_study
from repository import REPOSITORY

DATA = REPOSITORY / "src/moelaws/studies/routing/data"
TABLE = DATA / "runs.parquet"


@pytest.fixture(scope="module")
def runs():
    return read_study(TABLE)


def test_the_authors_file_imported_anew_gives_the_shipped_table(tmp_path):
    table = import_table(DATA / "curves.csv.gz", DATA / "runs.yaml")
    table.write(tmp_path / "runs.parquet")
    anew, shipped = read_study(tmp_path / "runs.parquet"), read_study(TABLE)
    pd.testing.assert_frame_equal(anew, shipped, check_exact=True)
    assert column_metadata(tmp_path / "runs.parquet") == column_metadata(TABLE)
    assert notes(tmp_path / "runs.parquet") == notes(TABLE)


def test_the_table_names_source_licence_and_authors_as_the_notice_does():
    origin = json.loads(notes(TABLE)["imported"])
    sha = hashlib.sha256((DATA / "curves.csv.gz").read_bytes()).hexdigest()
    commit = "42da0c392b127df2c01fa7b705f72396050d05e5"
    assert origin["sha256"] == sha
    assert commit in origin["url"]
    assert origin["licence"] == "CC-BY-4.0"
    assert origin["attribution"].startswith("Copyright 2022 DeepMind Technologies Limited. Clark")
    for text in ((REPOSITORY / "NOTICE").read_text(), (DATA / "README.md").read_text()):
        assert sha in text
        assert commit in text
        assert "Copyright 2022 DeepMind Technologies Limited" in text


def test_there_are_223_models_of_three_routers_and_dense_ones(runs):
    counts = {"S-Base": 87, "Hash": 69, "RL-R": 54, "Dense": 13}
    assert runs["router"].value_counts().to_dict() == counts
    assert set(runs["source"]) == {"imported"}
    assert set(runs["k_source"]) == {1, 2, 4}
    own = runs[(runs["k_source"] == 1) & (runs["routing_frequency"] == 0.5)]
    of = {name: own["sweep"].str.split(",").map(lambda s, n=name: n in s) for name in own["sweep"]}
    swept = {name: int(mask.sum()) for name, mask in of.items() if "," not in name}
    assert swept == {"s_base": 61, "rl_r": 62, "hash": 59}


def test_tokens_are_those_of_the_paper(runs):
    np.testing.assert_allclose(runs["D"], 130e9, rtol=0.01)
    assert runs["steps"].value_counts().to_dict() == {249000: 221, 248000: 1, 250000: 1}


def test_counts_of_parameters_follow_from_the_shapes_without_embeddings():
    """No text says so: attention with relative positions, and no embeddings."""
    source, _ = read_any(DATA / "curves.csv.gz")
    heads = source["num_heads"] * source["kqv_size"]
    block = 5 * source["d_model"] * heads + 8 * source["d_model"] ** 2 + 4 * source["d_model"]
    assert (source["num_blocks"] * block == source["dense_parameter_count"]).all()
    routed = source[source["router_type"].isin(["S-Base", "Hash"])]
    layers = routed["routing_frequency"] * routed["num_blocks"]
    E, d = routed["num_experts"], routed["d_model"]
    total = routed["dense_parameter_count"] + layers * ((E - 1) * 8 * d**2 + E * d)
    assert (total == routed["total_parameter_count"]).all()


def test_active_parameters_are_the_base_models_with_the_routers_and_more_experts(runs):
    routed = runs[runs["router"].isin(["S-Base", "Hash"])]
    layers = routed["n_layers"] - routed["n_dense_layers"]
    d = routed["d_model"]
    more = layers * ((routed["k"] - 1) * 8 * d**2 + routed["E"] * d)
    assert (routed["N_active_nonemb"] == routed["N_dense"] + more).all()
    dense = runs[runs["router"] == "Dense"]
    assert (dense["N_active_nonemb"] == dense["N_total_nonemb"]).all()
    assert (dense[["E", "k", "utilisation"]] == 1).all(axis=None)


def test_runs_of_the_same_settings_and_seed_differ_by_more_than_runs_of_other_seeds(runs):
    """Four pairs differ in something that the file does not tell; the fits leave them out."""
    settings = ["router", "size", "E", "k_source", "routing_frequency"]
    spread = runs.groupby([*settings, "seed"])["L"].agg(lambda L: L.max() - L.min())
    pairs = spread[spread > 0]
    assert len(pairs) == 4
    assert pairs.between(0.01, 0.09).all()
    assert not set(pairs.index.get_level_values("routing_frequency")) & {0.5}
    seeds = runs[(runs["router"] == "Dense") & (runs["size"] == "130M")]["L"]
    assert seeds.std() == pytest.approx(7e-4, abs=1e-4)
