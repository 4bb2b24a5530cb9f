"""Compute-optimal model scale and data of dense models (Bi et al. 2024, 2401.02954)."""

from moelaws.laws.base import Variable
from moelaws.laws.leverage.allocation import optimum
from moelaws.laws.vocabulary import variable

LAW = optimum(
    (
        (Variable("M", "FLOP/token", "best training FLOPs per token"), 0.1715, 0.5243),
        (variable("D", "best number of training tokens"), 5.8316, 0.4757),
    ),
    variable("C", "training compute M D, without embeddings"),
    id="deepseek.allocation",
    title="Best model scale and data of dense models over compute",
    source="Bi et al. 2024 (DeepSeek LLM), Eq 4",
    errata=("R: M D is 1.00012 C; M counts attention over the context, and no embeddings.",),
)
