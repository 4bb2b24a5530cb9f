"""A small prepared corpus of random words, for tests that train or read a trained model."""

import random
from pathlib import Path

from moelaws.corpus.prepare import prepare
from moelaws.corpus.sources import resolve
from moelaws.files.layout import Results
from moelaws.model.transformer import Transformer
from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus
from moelaws.spec.run import RunConfig
from moelaws.training import weights

VOCABULARY = 280
EXPERTS = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8}


def random_corpus(root: Path) -> tuple[Corpus, Path]:
    """Returns identity and folder, below ``root/results``, of a corpus of sixty documents."""
    texts, draw = root / "texts", random.Random(3)
    texts.mkdir()
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 7))) for _ in range(200)]
    for i in range(60):
        lines = (" ".join(draw.choices(words, k=9)) for _ in range(draw.randint(20, 60)))
        (texts / f"{i:02}.txt").write_text("\n".join(lines))
    sources = resolve("*.txt", texts)
    identity = Corpus(source=sources.identity(), vocab_size=VOCABULARY, validation=0.2)
    folder = Results(root / "results").corpus(identity.corpus_id)
    prepare(identity, sources, folder)
    return identity, folder


def run_of(text: Corpus, model: dict[str, object] | None = None, **changes: object) -> RunConfig:
    """Returns a run on ``text`` of less than a second; the other words replace settings."""
    data = {
        "model": {
            "n_layers": 2, "d_model": 16, "n_heads": 2, "n_kv": 1, "context": 16,
            "vocab_size": VOCABULARY, "ffn": EXPERTS, **(model or {}),
        },
        "corpus": text.model_dump(),
        "steps": 30,
        "batch": 4,
        "balance_group": 2,
        "optimizer": {"lr": 1e-2},
        "evaluation": {"sequences": 64},
        **changes,
    }  # fmt: skip
    return parse(RunConfig, data, "test")


def keep_weights(results: Results, run: RunConfig, seeds: dict[int | None, int]) -> None:
    """Keeps untrained weights in the place of a run's; ``seeds`` are those of steps, None of the
    end."""
    results.run(run.run_id).mkdir(parents=True)
    (results.run(run.run_id) / "config.json").write_text(run.canonical_json())
    folder = results.weights(run.run_id)
    weights.make_folder(folder)
    for step, seed in seeds.items():
        weights.save(folder, run, Transformer(run.model, seed).state_dict(), step)
    weights.finish(folder, "completed", [step for step in seeds if step])
