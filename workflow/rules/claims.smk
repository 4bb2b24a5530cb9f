# The studies' claims, which code judges.


rule judge:
    input:
        read_by("claims"),
        registrations=lambda w: JOBS.registrations(w.study),
    output:
        FOLDER.verdicts("{study}"),
    log:
        RESULTS.log(FOLDER, "claims", "{study}", "judge"),
    conda:
        "../../envs/cpu.yaml"
    params:
        study=study_of,
    shell:
        make("claims")


rule power:
    input:
        table=lambda w: JOBS.folder.table(w.study),
        code=lambda w: JOBS.code("power", w.study),
        spec=lambda w: JOBS.power_spec(w.study),
    output:
        FOLDER.power("{study}"),
    log:
        RESULTS.log(FOLDER, "claims", "{study}", "power"),
    conda:
        "../../envs/cpu.yaml"
    params:
        study=study_of,
    shell:
        make("power")


rule claims:
    input:
        verdicts=JOBS.verdicts(),
        powers=JOBS.powers(),
        code=code("moelaws.claims.page"),
        spec=lambda w: JOBS.page_spec("claims", [*JOBS.verdicts(), *JOBS.powers()]),
    output:
        report(FOLDER.claims, category="claims"),
    log:
        FOLDER.claims.with_suffix(".log"),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        powers=[word for path in JOBS.powers() for word in ("--power", path)],
    shell:
        f"moelaws claims {{input.verdicts}} {{params.powers}} {SETTINGS} --out {{output}} "
        "> {log} 2>&1"
