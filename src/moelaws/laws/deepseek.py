"""Rates, batches, sizes and tokens of dense models over compute (Bi et al. 2024, 2401.02954)."""

from moelaws.laws.base import Law, Variable
from moelaws.laws.leverage.allocation import optimum
from moelaws.laws.leverage.hyperparameters import BATCH_SIZE, PEAK
from moelaws.laws.vocabulary import variable

_SCALE = Variable("M", "FLOP/token", "best training FLOPs per token")
_C = variable("C", "training compute without embeddings")
LAW = optimum(
    ((PEAK, 0.3118, -0.1250), (BATCH_SIZE, 0.2920, 0.3271)),
    _C,
    id="deepseek",
    title="Learning rate and batch of dense models over compute",
    source="Bi et al. 2024 (DeepSeek LLM), Eq 1",
    errata=("R: fitted from 1e17 to 2e19 FLOP; the law is of a multi-step schedule of the rate.",),
)
VARIANTS: dict[str, Law] = {
    "allocation": optimum(
        ((_SCALE, 0.1715, 0.5243), (variable("D", "best number of tokens"), 5.8316, 0.4757)),
        _C,
        id="deepseek",
        variant="allocation",
        title="Best model scale and data of dense models over compute",
        source="Bi et al. 2024 (DeepSeek LLM), Eq 4",
        errata=("R: M D is 1.00012 C; M counts attention over the context, and no embeddings.",),
    )
}
