# Snakemake's own report, in one file that opens offline.


# It is read when the report is made, and exists by then.
report: str(FOLDER.cover.resolve())


# It ends with the digest of all that the report shows, which stands for everything behind it: each
# record names the digests of what it was made of.
rule cover:
    input:
        shown=JOBS.shown(),
        text=text_of_report("workflow.rst"),
        spec=lambda w: JOBS.page_spec("cover", JOBS.shown()),
    output:
        FOLDER.cover,
    log:
        FOLDER.cover.with_suffix(".log"),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    shell:
        "draft=$(dirname {output})/.cover.rst; "
        "{{ cat {input.text}; sha256sum {input.shown} | sort | sha256sum | cut -c -64; }} "
        "> $draft 2> {log}; python -m moelaws.files.atomic $draft {output}"


rule report:
    input:
        figures=JOBS.reported(),
        texts=[FOLDER.cover, text_of_report("figure.rst")],
        spec=lambda w: JOBS.page_spec("report", JOBS.pictures()),
    output:
        FOLDER.report,
    log:
        FOLDER.report.with_suffix(".log"),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        # The file holds this call's configuration, for no word of --config can hold every path.
        # Its name is the same for every configuration, so another one makes no new report.
        config=lambda w: str(JOBS.report_config(config)),
    # A job that ended after its Snakemake was killed stays marked as incomplete, and a report
    # without --rerun-incomplete would be refused for ever. It runs no job. Snakemake neither writes
    # it beside its place nor seals it, as our commands do.
    shell:
        "draft=$(dirname {output})/.report.html; "
        "snakemake --nolock --rerun-incomplete --report $draft --configfile {params.config} "
        "-- {input.figures} > {log} 2>&1; python -m moelaws.files.atomic $draft {output}"
