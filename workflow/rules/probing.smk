# Hidden states of the runs whose weights a study keeps: what a derived table with `hidden: true`
# reads. Probing code is an input of theirs, unlike a training's: it takes seconds.


rule probe:
    input:
        weights=RESULTS.kept("{run}"),
        code=code("moelaws.probing.hidden"),
    output:
        RESULTS.hidden("{run}"),
    log:
        RESULTS.root / "logs/hidden/{run}.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        root=lambda w: str(RESULTS.root),
    shell:
        "moelaws probe {wildcards.run} --results {params.root:q} --out {output} > {log} 2>&1"
