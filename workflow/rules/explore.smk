# The page to open first. It has the files that the other rules made, in one file.


rule explore:
    input:
        shown=JOBS.explored(),
        code=relative(of_explore(JOBS.shown_studies.values(), JOBS.advice)),
        spec=lambda w: JOBS.texts_spec(),
    output:
        FOLDER.explore,
    log:
        FOLDER.explore.with_suffix(".log"),
    conda:
        "../../envs/cpu.yaml"
    shell:
        f"moelaws explore {SETTINGS} --out {{output}} > {{log}} 2>&1"
