"""Cut the demo's grids in place for a quick run: budgets a tenth, no second seeds, few trials.

README's own demo is left as it is: its full numbers show what reduced ones do not.
"""

from pathlib import Path

import yaml

SPENT = ("C", "D", "steps")  # settings that say how long a run trains


def tenth(value):
    if isinstance(value, list):
        return [tenth(one) for one in value]
    return float(value) / 10


config = yaml.safe_load(Path("config/config.yaml").read_text())
readme = config["studies"]
Path("config/config.yaml").write_text(yaml.safe_dump(config | {"power": 1}, sort_keys=False))
for path in sorted(Path("config/studies").glob("*.yaml")):
    study = yaml.safe_load(path.read_text())
    if "demo" not in study.get("grids", {}) or study["study"] in readme:
        continue
    demo = study["grids"]["demo"]
    demo.setdefault("derive", {}).setdefault("steps", {"rule": "given"})["min_steps"] = 5
    # A sweep with a name is what some fit or figure is of.
    repeats = [s for s in demo["sweeps"] if not s.get("name") and s["axes"].get("seed", 0) != 0]
    demo["sweeps"] = [sweep for sweep in demo["sweeps"] if sweep not in repeats]
    settings = demo.get("settings", {})
    settings |= {name: tenth(settings[name]) for name in SPENT if name in settings}
    if "evaluation_sequences" in settings:  # else runs would evaluate for longer than they train
        settings["evaluation_sequences"] = 64
    for sweep in demo["sweeps"]:
        if isinstance(seeds := sweep.get("axes", {}).get("seed"), list):
            sweep["axes"]["seed"] = seeds[:1]
        for axes in (sweep.get("axes", {}), *sweep.get("zip", ())):
            axes |= {name: tenth(axes[name]) for name in SPENT if name in axes}
    for fit in study.get("fits", ()):
        if fit.get("bootstrap", 200) > 20:
            fit["bootstrap"] = 20
    for contest in study.get("contests", ()):
        contest["bootstrap"] = 10
    path.write_text(yaml.safe_dump(study, sort_keys=False))
