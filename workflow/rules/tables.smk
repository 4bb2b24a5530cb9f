# One table a study: a change of one study's runs leaves the other studies' fits alone.


rule aggregate:
    input:
        runs=lambda w: summaries(w.study),
        code=code("moelaws.tables.aggregate"),
    output:
        RESULTS.table(TIER, "{study}"),
    log:
        RESULTS.root / "logs" / TIER / "tables/{study}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        sweep=lambda w: sweep_digest(w.study),
    shell:
        "moelaws aggregate {wildcards.study} --out {output} > {log} 2>&1 && "
        # A learning rate at the edge of those tried is worth a line on the terminal.
        "sed -n 's/^.*warning: /moelaws: {wildcards.study}: warning: /p' {log} >&2"


rule derive:
    input:
        table=RESULTS.table(TIER, "{study}"),
        fits=table_inputs("derived")[0],
        code=lambda w: code(
            "moelaws.analysis.derive",
            f"moelaws.analysis.{entry('derived', w.study, w.name).code}",
        ),
    output:
        RESULTS.derived(TIER, "{study}", "{name}"),
    log:
        RESULTS.root / "logs" / TIER / "derived/{study}/{name}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        entry=lambda w: entry("derived", w.study, w.name).canonical_json(),
    shell:
        "moelaws derive {wildcards.name} --study {wildcards.study} > {log} 2>&1 && "
        # An optimum at the edge of the grid is worth a line on the terminal.
        "sed -n 's/^.*warning: /moelaws: {wildcards.study}, {wildcards.name}: warning: /p' {log} >&2"
