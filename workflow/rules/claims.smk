# The papers' claims, each judged by a rule in code.


rule judge:
    input:
        table=lambda w: JOBS.own_table(w.study),
        fits=lambda w: JOBS.fits_read(w.study, JOBS.studies[w.study].claims),
        derived=lambda w: JOBS.derived_read(w.study, JOBS.studies[w.study].claims),
        code=lambda w: JOBS.reader_code(w.study, "claims", JOBS.studies[w.study].claims),
    output:
        FOLDER.verdicts("{study}"),
    log:
        RESULTS.log(FOLDER, "claims", "{study}", "judge"),
    conda:
        "../../envs/cpu.yaml"
    params:
        entries=lambda w: [c.canonical_json() for c in JOBS.studies[w.study].claims],
        study=study_of,
        files=lambda w: JOBS.files(w.study, JOBS.studies[w.study].claims),
        simulated=SIMULATED,
        tier=TIER,
    shell:
        "moelaws judge {params.study:q} --tier {params.tier} {params.files} {params.simulated} "
        "--out {output} > {log} 2>&1"


rule claims:
    input:
        verdicts=JOBS.verdicts(),
        code=code("moelaws.claims.page"),
    output:
        report(FOLDER.claims, category="claims"),
    log:
        FOLDER.claims.with_suffix(".log"),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        tier=TIER,
    shell:
        "moelaws claims {input.verdicts} --tier {params.tier} --out {output} > {log} 2>&1"
