# A run is named by its content, so its configuration is no parameter to compare, and training
# code is no input: a run made by other code is shown as stale (`moelaws runs --stale`).


rule train:
    input:
        # The run names its corpus by content; ancient: a corpus made again trains nothing again.
        ancient(
            lambda w: RESULTS.corpus(RUNS[w.run].config.corpus.corpus_id) / "meta.json"
        ),
    output:
        RESULTS.summary("{run}"),
    log:
        RESULTS.run("{run}") / "log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **training_resources(PROJECT.device),
    params:
        config=lambda w: RUNS[w.run].config.canonical_json(),
    shell:
        "printf %s {params.config:q} | moelaws train - > {log} 2>&1"
