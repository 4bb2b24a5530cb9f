# The advice of this tier's fits and of published laws beyond its largest budget.


rule outlook:
    input:
        fits=JOBS.advising_fits(),
        draws=[path.with_suffix(".bootstrap.parquet") for path in JOBS.advising_fits()],
        tables=JOBS.advising_tables(),
        advice="config/advice.yaml",
        code=relative(of_outlook(JOBS.advice) if JOBS.advice else ()),
        spec=lambda w: JOBS.page_spec("outlook", JOBS.advising_fits()),
    output:
        page=report(FOLDER.outlook, category="advice"),
        png=report(
            FOLDER.outlook.with_suffix(".png"),
            category="advice",
            caption="../report/outlook.rst",
        ),
        record=FOLDER.outlook.with_suffix(".json"),
    log:
        FOLDER.outlook.with_suffix(".log"),
    conda:
        "../../envs/cpu.yaml"
    params:
        tables=[word for path in JOBS.advising_tables() for word in ("--table", path)],
    shell:
        f"moelaws outlook {{input.fits}} {{params.tables}} {SETTINGS} "
        "--out {output.page} > {log} 2>&1"
