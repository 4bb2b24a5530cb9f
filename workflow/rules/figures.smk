# What a paper shows, from tables and fits. A figure: PDF for print, PNG for the report, and a CSV of
# exactly the plotted numbers. A table: CSV in full precision, Markdown and LaTeX.


rule draw:
    input:
        **read_by("figures"),
        code=lambda w: code(
            "moelaws.figures.draw",
            f"moelaws.figures.{w.study}.{entry('figures', w.study, w.name).code}",
        ),
    output:
        png=report(
            figure_file("{study}", "{name}").with_suffix(".png"),
            caption="../report/figure.rst",
            category="{study}",
            labels={"figure": "{name}"},
        ),
        pdf=figure_file("{study}", "{name}"),
        csv=figure_file("{study}", "{name}").with_suffix(".csv"),
    log:
        log_file("figures", "{study}", "{name}"),
    wildcard_constraints:
        name=names("figures"),
    conda:
        "../../envs/cpu.yaml"
    params:
        entry=lambda w: entry("figures", w.study, w.name).canonical_json(),
        caption=lambda w: entry("figures", w.study, w.name).caption,
    shell:
        "moelaws figure {wildcards.name} --study {wildcards.study} > {log} 2>&1"


rule tabulate:
    input:
        **read_by("tables"),
        code=lambda w: code(
            "moelaws.figures.draw",
            f"moelaws.figures.{w.study}.{entry('tables', w.study, w.name).code}",
        ),
    output:
        csv=report(
            paper_table_file("{study}", "{name}"),
            caption="../report/figure.rst",
            category="{study}",
            labels={"figure": "{name}"},
        ),
        markdown=paper_table_file("{study}", "{name}").with_suffix(".md"),
        latex=paper_table_file("{study}", "{name}").with_suffix(".tex"),
    log:
        log_file("figures", "{study}", "{name}"),
    wildcard_constraints:
        name=names("tables"),
    conda:
        "../../envs/cpu.yaml"
    params:
        entry=lambda w: entry("tables", w.study, w.name).canonical_json(),
        caption=lambda w: entry("tables", w.study, w.name).caption,
    shell:
        "moelaws table {wildcards.name} --study {wildcards.study} > {log} 2>&1"
