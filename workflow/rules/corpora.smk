# A corpus' meta.json is written last: if it exists, tokenizer and shards lie beside it.


rule prepare_corpus:
    output:
        RESULTS.corpus("{corpus}") / "meta.json",
    log:
        RESULTS.root / "logs/corpora/{corpus}.log",
    # Trainings wait for it, and most of the other jobs for these.
    priority: 10**8
    # Nodes of a cluster may have no network, so the text is fetched where Snakemake runs.
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    # This is no parameter, so that another grid prepares no text again.
    resources:
        held_out=lambda w: JOBS.held_out(w.corpus),
    params:
        vocabulary=lambda w: JOBS.corpora[w.corpus].vocab_size,
        text=lambda w: JOBS.corpus_option(w.corpus),
    shell:
        "moelaws corpus "
        + SETTINGS
        + " {params.text} --vocab-size {params.vocabulary} --hold-out {resources.held_out} --out $(dirname {output}) "
        "> {log} 2>&1"
