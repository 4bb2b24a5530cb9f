"""Learning rate and batch of dense models over compute (Bi et al. 2024, 2401.02954)."""

from moelaws.laws.leverage.allocation import optimum
from moelaws.laws.leverage.hyperparameters import BATCH_SIZE, PEAK
from moelaws.laws.vocabulary import variable

LAW = optimum(
    ((PEAK, 0.3118, -0.1250), (BATCH_SIZE, 0.2920, 0.3271)),
    variable("C", "training compute without embeddings"),
    id="deepseek.hyperparameters",
    title="Learning rate and batch of dense models over compute",
    source="Bi et al. 2024 (DeepSeek LLM), Eq 1",
    errata=("R: fitted from 1e17 to 2e19 FLOP; the law is of a multi-step schedule of the rate.",),
)
