"""Generalization paper: how do losses of mixtures follow from the dimension of their data?

laws/     scaling.py has the slopes, exponents.py Eq 6 and 24, routing.py the price of routing,
          active_experts.py k*, kappa.py the growth of kappa with the experts
derived/  runs.py counts parameters and follows the routing term; exponents.py gives the own
          exponents and compares them with the theory, by number of experts too; dimension.py
          measures the manifold of hidden states
figures.py makes what the figures draw
tables.py sets the paper's tables, claims.py has what its claims measure
"""
