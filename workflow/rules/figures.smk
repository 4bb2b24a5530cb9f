# A paper's figures and tables, from tables of runs and fits. A figure is a PDF for print, a PNG for
# the report, and a CSV of exactly the plotted numbers. A table is a CSV in full precision, Markdown
# and LaTeX.


rule draw:
    input:
        **read_by("figures"),
    output:
        png=report(
            FOLDER.figure("{study}", "{name}").with_suffix(".png"),
            caption="../report/figure.rst",
            category="{study}",
            labels=labels_of,
        ),
        pdf=FOLDER.figure("{study}", "{name}"),
        csv=FOLDER.figure("{study}", "{name}").with_suffix(".csv"),
        record=FOLDER.figure("{study}", "{name}").with_suffix(".json"),
    log:
        log_file("figures"),
    wildcard_constraints:
        name=JOBS.names("figures"),
    conda:
        "../../envs/cpu.yaml"
    params:
        caption=lambda w: without_tags(JOBS.entry("figures", w.study, w.name).caption),
        study=study_of,
        files=files_of("figures"),
    shell:
        "moelaws figure {wildcards.name} --study {params.study:q} {params.files} --out {output.pdf} > {log} 2>&1"


rule tabulate:
    input:
        **read_by("tables"),
    output:
        csv=report(
            FOLDER.paper_table("{study}", "{name}"),
            caption="../report/figure.rst",
            category="{study}",
            labels=labels_of,
        ),
        markdown=FOLDER.paper_table("{study}", "{name}").with_suffix(".md"),
        latex=FOLDER.paper_table("{study}", "{name}").with_suffix(".tex"),
        record=FOLDER.paper_table("{study}", "{name}").with_suffix(".json"),
    log:
        log_file("figures"),
    wildcard_constraints:
        name=JOBS.names("tables"),
    conda:
        "../../envs/cpu.yaml"
    params:
        caption=lambda w: without_tags(JOBS.entry("tables", w.study, w.name).caption),
        study=study_of,
        files=files_of("tables"),
    shell:
        "moelaws table {wildcards.name} --study {params.study:q} {params.files} --out {output.csv} > {log} 2>&1"
