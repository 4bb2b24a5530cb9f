# The page that people open first: the files that the other rules made, in one file.


rule explore:
    input:
        shown=JOBS.explored(),
        code=JOBS.explore_code(),
    output:
        FOLDER.explore,
    log:
        FOLDER.explore.with_suffix(".log"),
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        texts=JOBS.explored_texts(),
        simulated=SIMULATED,
    shell:
        "moelaws explore "
        + SETTINGS
        + " {params.simulated} --out {output} > {log} 2>&1"
