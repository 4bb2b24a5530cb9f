# Snakemake's own report, in one file that opens offline.


# It is read when the report is made, and exists by then.
report: str(FOLDER.cover.resolve())


rule cover:
    input:
        shown=JOBS.shown(),
        text="workflow/report/workflow.rst",
        code=code("moelaws.cli.cover"),
        spec=lambda w: JOBS.page_spec("cover", JOBS.shown()),
    output:
        FOLDER.cover,
    log:
        FOLDER.cover.with_suffix(".log"),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    shell:
        "moelaws cover {input.shown} --text {input.text} --out {output} > {log} 2>&1"


rule report:
    input:
        figures=JOBS.figures()
        + JOBS.paper_tables()
        + JOBS.claims_pages()
        + JOBS.laws_pages()
        + JOBS.outlooks(),
        texts=[FOLDER.cover, "workflow/report/figure.rst"],
        spec=lambda w: JOBS.page_spec("report", JOBS.figures()),
    output:
        FOLDER.report,
    log:
        FOLDER.report.with_suffix(".log"),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    # The report gets this call's configuration. It is in the line and not in params, so that
    # another spelling of the same configuration makes no new report. A job that ended after its
    # Snakemake was killed stays marked as incomplete, and a report without --rerun-incomplete
    # would be refused for ever. It runs no job.
    shell:
        "snakemake --nolock --rerun-incomplete --report {output} "
        + (
            words("--config", *(f"{k}={json.dumps(v)}" for k, v in config.items()))
            if config
            else ""
        )
        + " -- {input.figures} > {log} 2>&1"
