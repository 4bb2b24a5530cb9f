"""One of several processes that train a run together; prints what it measured, for tests.

torchrun --nproc-per-node R several.py CONFIG MICRO_BATCH
"""

import json
import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1]))
from calls import Made
from moelaws.model.transformer import Transformer
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig
from moelaws.training.loop import Trainer
from moelaws.training.ranks import joined


def main(text, micro_batch):
    torch.set_num_threads(1)
    config = parse(RunConfig, json.loads(text), "argument")
    with joined("cpu") as ranks:
        placed = {}
        if ranks.size > 1:
            from moelaws.training.sharding import Sharding

            placed = {"place": Sharding(ranks, "cpu")}
        model = Transformer(config.model, config.seed, precision=config.precision, **placed)
        trainer = Trainer(config, model, Made(config), int(micro_batch) or None, ranks=ranks)
        trainer.run()
        if ranks.is_first:
            trainer.history.settle()
            rows = [row[:-1] for row in trainer.history.rows]
            windows = [window.tolist() for window in trainer.expert_load.windows]
            windows += [bias.tolist() for bias in trainer.model.biases().values()]
            held = sum(p.numel() for p in trainer.optimizer.parameters)
            print(json.dumps({"rows": rows, "windows": windows, "held": held}))


if __name__ == "__main__":
    main(*sys.argv[1:])
