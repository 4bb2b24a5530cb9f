"""A study made up for plans: fits of its table, of one another and of what it cannot give."""

import yaml

from moelaws.grids.expand import expand
from moelaws.grids.sweep import Sweep
from moelaws.grids.text import CorpusChoice
from moelaws.spec.base import parse
from moelaws.spec.corpus import Text
from moelaws.spec.study import Study

TEXT = CorpusChoice(source=Text(digest="0" * 64), validation=0.05)

STUDY = yaml.safe_load("""
study: small
title: A sweep that is not trained yet
grids:
  demo:
    settings: {context: 128, vocab_size: 512, tied_embeddings: true, n_layers: 2, n_heads: 2,
               top_k: 2, G: 1, batch: 4, lr: 1.0e-3}
    derive:
      n_experts: {rule: sparsity}
      d_expert: {rule: granularity}
      steps: {rule: compute, convention: sparsity, min_steps: 10}
    sweeps:
      - name: main
        axes: {C: [1.0e+16, 1.0e+17, 1.0e+18], S: [0, 0.5], d_model: [64, 128, 256, 512]}
      - {name: wide, axes: {C: [1.0e+18], S: [0.5], d_model: [256, 512]}}
simulation: {law: chinchilla, mapping: {N: N_active}, noise: 0.001}
fits:
  # Each S alone, and then one of the law's coefficients over their values.
  - {name: later, law: leverage.compute, table: each, mapping: {EL: A, C: S}}
  - {name: each, law: chinchilla, mapping: {N: N_active}, split_by: S}
  - {name: loss, law: chinchilla, mapping: {N: N_active}}
  - {name: total, law: chinchilla, mapping: {N: N_total}}
  - {name: balance, law: chinchilla, mapping: {L: balance_cv}, simulated: false}
  - {name: few, law: chinchilla, mapping: {N: N_active}, sweep: wide}
""")


def small(**changes):
    """The study with other keys, and its sweep."""
    study = parse(Study, {**STUDY, **changes}, "small.yaml")
    return study, Sweep(study, "demo", tuple(expand(study.grids["demo"], TEXT, "small.yaml")))
