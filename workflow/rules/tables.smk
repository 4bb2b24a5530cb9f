# Each study has its own table, so a change of its runs does not affect the fits of other studies.


# From the batches of the study's runs, or the table of published runs that it ships. With simulated
# losses nothing is read.
rule aggregate:
    input:
        runs=lambda w: [] if JOBS.simulated else TRAININGS.table_inputs(w.study),
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
        make("runs")


rule derive:
    input:
        read_by("derived"),
        probed=lambda w: TRAININGS.probed(
            w.study, JOBS.entry("derived", w.study, w.name)
        ),
    output:
        FOLDER.derived("{study}", "{name}"),
    log:
        log_file("derived"),
    conda:
        "../../envs/cpu.yaml"
    params:
        study=study_of,
    shell:
        make("derived", "{wildcards.name}")
