# A paper's figures and tables, from tables of runs and fits. A figure is a PDF for print, a PNG for
# the report, and a CSV of exactly the plotted numbers. A table is a CSV in full precision, Markdown
# and LaTeX.


# One job draws all pictures of a study, because to start a process takes longer than to draw. It
# copies those that are up to date, as their records say. A folder and not the pictures themselves:
# Snakemake removes outputs before a job and after its failure. With update() it would restore them
# with new time stamps, and so forget that the job failed.
rule draw:
    input:
        read_by("pictures"),
    output:
        temp(directory(FOLDER.drawn("{study}"))),
    log:
        RESULTS.log(FOLDER, "drawn", "{study}", "draw"),
    conda:
        "../../envs/cpu.yaml"
    params:
        study=study_of,
    shell:
        make("pictures")


rule place_figure:
    input:
        read_by("figures"),
        drawn=FOLDER.drawn("{study}"),
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
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        caption=lambda w: without_tags(JOBS.entry("figures", w.study, w.name).caption),
        study=study_of,
    shell:
        place("figures", "{output.png}")


rule place_table:
    input:
        read_by("tables"),
        drawn=FOLDER.drawn("{study}"),
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
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        caption=lambda w: without_tags(JOBS.entry("tables", w.study, w.name).caption),
        study=study_of,
    shell:
        place("tables", "{output.csv}")
