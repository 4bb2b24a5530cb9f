"""Compute-optimal model scale and data over compute (leverage paper, Table 5).

The model's scale M is its training FLOPs per token, without logits, so that C = M D.
"""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
