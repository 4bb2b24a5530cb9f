# What the fits of this tier and the published laws advise beyond its largest budget.


rule outlook:
    input:
        fits=JOBS.advising_fits(),
        draws=[path.with_suffix(".bootstrap.parquet") for path in JOBS.advising_fits()],
        tables=JOBS.advising_tables(),
        advice="config/advice.yaml",
        code=JOBS.outlook_code(),
    output:
        report(FOLDER.outlook, category="advice"),
        FOLDER.outlook.with_suffix(".parquet"),
        FOLDER.outlook.with_suffix(".pdf"),
        report(
            FOLDER.outlook.with_suffix(".png"),
            category="advice",
            caption="../report/outlook.rst",
        ),
        FOLDER.outlook.with_suffix(".csv"),
    log:
        FOLDER.outlook.with_suffix(".log"),
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        tier=TIER,
        tables=lambda w, input: [w for t in input.tables for w in ("--table", t)],
    shell:
        "moelaws outlook {input.fits} {params.tables} --tier {params.tier} "
        "--out {output[0]} > {log} 2>&1"
