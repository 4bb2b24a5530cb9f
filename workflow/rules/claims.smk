# The papers' claims, each judged by a rule in code.


rule judge:
    input:
        table=lambda w: own_table(w.study),
        fits=lambda w: fits_read(w.study, STUDIES[w.study].claims),
        derived=lambda w: derived_read(w.study, STUDIES[w.study].claims),
        code=lambda w: code("moelaws.claims.judge", f"moelaws.claims.{w.study}"),
    output:
        verdicts_file("{study}"),
    log:
        log_file("claims", "{study}", "judge"),
    conda:
        "../../envs/cpu.yaml"
    params:
        entries=lambda w: [c.canonical_json() for c in STUDIES[w.study].claims],
    shell:
        "moelaws judge {wildcards.study} > {log} 2>&1"


rule claims:
    input:
        verdicts=verdicts(),
        code=code("moelaws.claims.judge"),
    output:
        report(claims_file(), category="claims"),
    log:
        claims_file().with_suffix(".log"),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    shell:
        "moelaws claims > {log} 2>&1"
