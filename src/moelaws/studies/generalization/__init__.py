"""Generalization paper: how do losses of mixtures follow from the dimension of their data?

laws/     scaling.py has the slopes, exponents.py Eq 6 and 24, routing.py the price of routing,
          active_experts.py k*, kappa.py the growth of kappa with the experts
derived/  runs.py counts parameters, slopes.py gives the own exponents; identities.py and
          amplification.py compare exponents by number of experts with the theory; routing.py and
          regimes.py follow the routing term; dimension.py measures the manifold of hidden states
          by intrinsic_dimension.py; consistency.py and draws.py are what they share
figures/  routing.py draws F1, dimension.py F2 and F3, slopes.py F4 and F5, amplification.py F6,
          frontier.py F7; axes.py is what they share
tables.py sets the paper's tables, claims.py has one rule a claim; both use reading.py
"""
