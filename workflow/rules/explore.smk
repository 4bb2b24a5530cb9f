# The page that people open first: all runs, curves, laws, figures and answers in one file.


rule explore:
    input:
        made=JOBS.explored(),
        # What it leads to.
        pages=JOBS.claims_pages() + JOBS.laws_pages() + JOBS.outlooks(),
        code=JOBS.explore_code(),
        spec=lambda w: JOBS.texts_spec(),
    output:
        FOLDER.explore,
    log:
        FOLDER.explore.with_suffix(".log"),
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    shell:
        f"moelaws explore {SETTINGS} {SIMULATED} --out {{output}} > {{log}} 2>&1"
