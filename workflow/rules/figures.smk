# A figure: PDF for print, PNG for the report, and a CSV of exactly the plotted numbers.


rule draw:
    input:
        table=RESULTS.table(TIER, "{study}"),
        fits=table_inputs("figures")[0],
        derived=table_inputs("figures")[1],
        code=lambda w: code(
            "moelaws.figures.draw",
            f"moelaws.figures.{w.study}.{entry('figures', w.study, w.name).code}",
        ),
    output:
        png=report(
            RESULTS.figure(TIER, "{study}", "{name}").with_suffix(".png"),
            caption="../report/figure.rst",
            category="{study}",
            labels={"figure": "{name}"},
        ),
        pdf=RESULTS.figure(TIER, "{study}", "{name}"),
        csv=RESULTS.figure(TIER, "{study}", "{name}").with_suffix(".csv"),
    log:
        RESULTS.root / "logs" / TIER / "figures/{study}/{name}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        entry=lambda w: entry("figures", w.study, w.name).canonical_json(),
        caption=lambda w: entry("figures", w.study, w.name).caption,
    shell:
        "moelaws figure {wildcards.name} --study {wildcards.study} > {log} 2>&1"
