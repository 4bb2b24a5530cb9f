"""Data for the page, as the command gathers them: few runs, and names that hold markup."""

import itertools

import numpy as np

IMAGE = "<img src=x onerror=alert(1)>"
NASTY = [
    IMAGE,
    "</script><script>alert(2)</script>",
    "&amp; \"quoted\" 'names'",
    "größe 模型 <b>b</b>",
]
PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
)


def finite(values):
    """Numbers as the page gets them: a missing one is None."""
    return [float(x) if np.isfinite(x) else None for x in np.ravel(values)]


def number(name, unit, description, values):
    return {
        "name": name, "unit": unit, "description": description, "type": "number",
        "values": finite(values),
    }  # fmt: skip


def text(name, values):
    levels = list(dict.fromkeys(values))
    codes = [levels.index(value) for value in values]
    return {
        "name": name, "unit": "1", "description": f"what {IMAGE} & co call {name}", "type": "text",
        "levels": levels, "codes": codes,
    }  # fmt: skip


def law_value(N, D):
    return 20 * N**-0.1 * D**-0.05


def page_data(count=60, points=20):
    """Returns the page's data of ``count`` runs with ``points`` logged steps each.

    Run i has id run-i; run 0 is named by markup. Runs 0 mod 10 have no loss and no curve. Runs 1
    and 2, 3 and 4, and so on have configurations that differ in their seed alone.
    """
    run = np.arange(count)
    size = 1e5 * 2.0 ** (run % 6)
    tokens = 1e6 * 2.0 ** (run % 7)
    sparsity = np.array([0, 0.5, 0.75, 0.9])[run % 4]
    loss = law_value(size, tokens) * (1 - 0.05 * sparsity)
    lost = run % 10 == 0
    trained = ~lost
    steps = np.where(trained, points, 0)
    return {
        "tier": "demo", "title": f"Page of {NASTY[1]}", "source": "simulated+trained",
        "made": "2026-01-01 00:00 UTC", "version": "0", "notes": NASTY,
        "pages": [{"href": "claims.md", "html": "<h3>C</h3><h4>One</h4><table><tr><td>1</table>"}],
        "runs": {"count": count, "columns": [
            text("run_id", [NASTY[0] if i == 0 else f"run-{i}" for i in run]),
            text("name", [f"d{64 + i} E8 {NASTY[0] if i == 0 else '1e12'} s0" for i in run]),
            text("study", [NASTY[i % 4] for i in run]),
            text("source", ["trained" if i % 3 else "simulated" for i in run]),
            text("status", ["diverged" if is_lost else "completed" for is_lost in lost]),
            number("N_total", "parameters", "all parameters", size),
            number("N_active", "parameters", "active parameters", size * (1 - sparsity)),
            number("D", "tokens", "training tokens", tokens),
            number("S", "1", "sparsity", sparsity),
            number("C_6N", "FLOP", NASTY[1], 6 * size * tokens),
            number("batch_tokens", "tokens", "tokens a step", np.full(count, 64.0)),
            number("steps", "steps", "optimizer steps", np.full(count, 10.0 * points)),
            number("L", "nats/token", "validation loss", np.where(lost, np.nan, loss)),
        ]},
        "details": [
            {
                "config": {
                    "model.d_model": 63 + int(i + i % 2), IMAGE: NASTY[1], "seed": int(i % 2),
                },
                "provenance": {"host": NASTY[2]},
            }
            for i in run
        ],
        "curves": [
            {"step": finite(10.0 * at), "loss": finite(x + 1 / at), "seconds": finite(0.5 * at)}
            for x, n in zip(loss, steps, strict=True)
            for at in [np.arange(1, n + 1)]
        ],
        "load": [[[0.1, 0.2, 0.3, 0.4], 4 * [0.25]] if has else [] for has in trained],
        "isoflop": [isoflop(loss, size)],
        "laws": [law("first", run[trained], size[trained], tokens[trained], loss[trained])],
        "studies": [study()],
        "report": "report.html",
    }  # fmt: skip


def isoflop(loss, size):
    xs = np.geomspace(1e5, 3.2e6, 5)
    series = [
        {
            "C": C, "S": S, "label": f"C = {C:g}, {IMAGE}", "run": [1, 2, 3],
            "x": size[1:4].tolist(), "L": loss[1:4].tolist(),
            "curve": {
                "x": xs.tolist(), "mean": [2.0, 3 - 4 * S, 2.0, 2.0, 2.0],
                "low": [1e-3] * 5, "high": [1e3] * 5,
            },
            "optimum": {"L": 2 - S / 5, "low": 1.9 - S, "high": 2.1},
        }
        for C, S in itertools.product([1e12, 1e13], [0.0, 0.5])
    ]  # fmt: skip
    return {
        "study": "one", "title": NASTY[1], "x": {"name": "N_total", "unit": "parameters"},
        "source": "trained", "level": 0.9, "series": series,
    }  # fmt: skip


def law(name, run, size, tokens, loss):
    """A power law, which the page's rule between the grid's points gives without error."""
    N, D = np.geomspace(5e4, 6.4e6, 9), np.geomspace(5e5, 1.28e8, 7)
    mean = law_value(*np.meshgrid(N, D, indexing="ij"))
    variable = {"unit": "1", "description": IMAGE, "log": True}
    return {
        "id": name, "law": name, "title": NASTY[1], "equation": IMAGE,
        "study": "one", "source": "simulated",
        "response": {"name": "L", "unit": "nats/token", "log": True}, "level": 0.9,
        "variables": [
            {**variable, "name": "N", "grid": N.tolist(), "fitted": [1e5, 3.2e6]},
            {**variable, "name": "D", "grid": D.tolist(), "fitted": [1e6, 6.4e7]},
        ],
        "mean": finite(mean), "low": finite(0.9 * mean),
        "high": finite(1.1 * mean),
        "params": [{"name": IMAGE, "estimate": 0.1, "low": None, "high": None}],
        "metrics": {"n": len(run), "r2": 0.99, "rmse": 0.01}, "holdout": None, "warnings": NASTY,
        "points": {
            "run": run.tolist(), "values": {"N": size.tolist(), "D": tokens.tolist()},
            "L": loss.tolist(),
        },
    }  # fmt: skip


def study():
    return {
        "key": "one", "title": NASTY[0], "source": "simulated",
        "figures": [{
            "name": "F1", "caption": NASTY[1], "image": PIXEL,
            "csv": "figures/one/F1.csv", "pdf": "figures/one/F1.pdf",
        }],
        "tables": [{
            "name": "T1", "caption": NASTY[2], "csv": "figures/one/T1.csv",
            "columns": ["a", IMAGE], "rows": [[1.5, IMAGE], [None, "b"]],
        }],
        "claims": [
            {
                "title": IMAGE, "paper": "p", "claim": NASTY[2], "verdict": verdict,
                "numbers": NASTY[1], "rule": "r", "figure": "F1",
            }
            for verdict in ("supported", "not supported", "cannot tell")
        ],
    }  # fmt: skip
