"""Marin's open MoE recipe: optima, losses and rate (marin-community/marin, experiments/grug/moe).

The models have 64 experts, of which 4 are active, and a shared one.
"""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
