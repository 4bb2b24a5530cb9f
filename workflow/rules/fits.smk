# A fit follows its table's content, its own entry in the study's YAML, and the engine's and its
# law's code; not the other laws.


rule fit:
    input:
        table=fitted_table,
        code=lambda w: code(
            "moelaws.fitting.fit", laws.module(entry("fits", w.study, w.name).law)
        ),
    output:
        json=fit_file("{study}", "{name}"),
        draws=fit_file("{study}", "{name}").with_suffix(".bootstrap.parquet"),
    log:
        log_file("fits", "{study}", "{name}"),
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        entry=lambda w: entry("fits", w.study, w.name).canonical_json(),
    shell:
        # Starts come and go in large arrays: without these each is taken from and given back to the
        # system, which for tables of thousands of rows costs as much time as the fit itself.
        "MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=1000000000 "
        "moelaws fit {input.table} --spec {params.entry:q} --out {output.json} > {log} 2>&1 && "
        "sed -n 's/^.*warning: /moelaws: {wildcards.study}, {wildcards.name}: warning: /p' {log} >&2"
