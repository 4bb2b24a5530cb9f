# One table a study: a change of one study's runs leaves the other studies' fits alone.

if SIMULATED:

    # In place of training and aggregation: a law's losses, with noise, at the grid's points.
    rule simulate:
        input:
            code=lambda w: code(
                "moelaws.tables.simulate", laws.module(STUDIES[w.study].simulation.law)
            ),
        output:
            table_file("{study}"),
        log:
            log_file("tables", "{study}", "simulate"),
        conda:
            "../../envs/cpu.yaml"
        params:
            simulation=lambda w: STUDIES[w.study].simulation.canonical_json(),
            grid=lambda w: STUDIES[w.study].grids[TIER].canonical_json(),
        shell:
            "moelaws simulate --study {wildcards.study} --out {output} > {log} 2>&1"

else:

    rule aggregate:
        input:
            runs=lambda w: summaries(w.study),
            code=code("moelaws.tables.aggregate"),
        output:
            table_file("{study}"),
        log:
            log_file("tables", "{study}", "aggregate"),
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
        **read_by("derived"),
        hidden=lambda w: (
            hidden_states(w.study) if entry("derived", w.study, w.name).hidden else []
        ),
        code=lambda w: code(
            "moelaws.analysis.derive",
            f"moelaws.analysis.{entry('derived', w.study, w.name).code}",
        ),
    output:
        derived_file("{study}", "{name}"),
    log:
        log_file("derived", "{study}", "{name}"),
    conda:
        "../../envs/cpu.yaml"
    params:
        entry=lambda w: entry("derived", w.study, w.name).canonical_json(),
    shell:
        "moelaws derive {wildcards.name} --study {wildcards.study} > {log} 2>&1 && "
        # An optimum at the edge of the grid is worth a line on the terminal.
        "sed -n 's/^.*warning: /moelaws: {wildcards.study}, {wildcards.name}: warning: /p' {log} >&2"
