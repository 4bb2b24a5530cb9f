"""Adds bytes and domains to losses by document that were recorded before these were kept.

python benchmarks/domains_of_records.py RESULTS CORPUS     CORPUS: a prepared text (moelaws corpus)

A run is left as it is where it was not trained on this text, by the digests of its shards. So what
is added is what the run would have recorded: the losses by document are not touched.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from moelaws.corpus.batches import validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.files.layout import DOCUMENTS, Results
from moelaws.records.runs import all_records
from moelaws.training.evaluation import DocumentLosses


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("corpus", type=Path)
    args = parser.parse_args()
    results, corpus = Results(args.results), PreparedCorpus.open(args.corpus, training=False)
    held_out, done = {}, 0
    for record in all_records(results):
        path, config = results.run(record.run_id) / DOCUMENTS, record.config
        if record.provenance["corpus_files"] != corpus.shard_hashes or not path.exists():
            continue
        known = parquet.read_table(path).to_pydict()
        shape = config["evaluation"]["sequences"], config["model"]["context"]
        if shape not in held_out:
            held_out[shape] = validation(corpus, *shape)
        own = held_out[shape]
        losses = DocumentLosses.of(np.zeros(own.documents.size), own)
        same = [losses.document.tolist(), losses.tokens.tolist()]
        assert [known["document"], known["tokens"]] == same, record.run_id
        parts = losses.document, losses.tokens, np.array(known["nats"]), losses.bytes
        DocumentLosses(*parts, losses.domain).write(path)
        done += 1
    print(f"{done} runs know the domains of their documents")


if __name__ == "__main__":
    main()
