# Each study has its own table, so a change of its runs does not affect the fits of other studies.

if JOBS.simulated:

    # A law's losses with noise at the grid's points, in place of training and aggregation
    rule simulate:
        input:
            code=lambda w: JOBS.code("runs", w.study),
            spec=lambda w: JOBS.runs_spec(w.study),
        output:
            FOLDER.table("{study}"),
        log:
            RESULTS.log(FOLDER, "tables", "{study}", "simulate"),
        conda:
            "../../envs/cpu.yaml"
        params:
            study=study_of,
        shell:
            "moelaws simulate --study {params.study:q} "
            + SETTINGS
            + " --out {output} > {log} 2>&1"

else:

    rule aggregate:
        input:
            # The batches of the study's runs, or the table of published runs that it ships
            runs=lambda w: TRAININGS.table_inputs(w.study),
            code=lambda w: JOBS.code("runs", w.study),
            spec=lambda w: JOBS.runs_spec(w.study),
        output:
            FOLDER.table("{study}"),
        log:
            RESULTS.log(FOLDER, "tables", "{study}", "aggregate"),
        localrule: True
        conda:
            "../../envs/cpu.yaml"
        params:
            study=study_of,
        shell:
            "moelaws aggregate {params.study:q} "
            + SETTINGS
            + " --out {output} > {log} 2>&1"


rule derive:
    input:
        **read_by("derived"),
        probed=lambda w: TRAININGS.probed(
            w.study, JOBS.entry("derived", w.study, w.name)
        ),
        data=lambda w: JOBS.shipped(w.study, JOBS.entry("derived", w.study, w.name)),
    output:
        FOLDER.derived("{study}", "{name}"),
    log:
        log_file("derived"),
    conda:
        "../../envs/cpu.yaml"
    params:
        study=study_of,
        tier=TIER,
    shell:
        "moelaws derive {wildcards.name} --study {params.study:q} --tier {params.tier} "
        f"{SIMULATED} --out {{output}} > {{log}} 2>&1"
