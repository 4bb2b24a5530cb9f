# Contests judge laws on held-out rows, and a page says which law to use for what.


rule contest:
    input:
        read_by("contests"),
    output:
        FOLDER.contest("{study}", "{name}"),
    log:
        log_file("contests"),
    conda:
        "../../envs/cpu.yaml"
    # Snakemake limits them to --cores.
    threads: 8
    params:
        study=study_of,
    shell:
        make("contests", "{wildcards.name}", "--threads {threads}")


rule contests:
    input:
        contests=JOBS.contests(),
        code=code("moelaws.claims.page"),
        spec=lambda w: JOBS.page_spec("laws", JOBS.contests()),
    output:
        report(FOLDER.laws, category="laws"),
    log:
        FOLDER.laws.with_suffix(".log"),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    shell:
        f"moelaws contests {{input.contests}} {SETTINGS} --out {{output}} > {{log}} 2>&1"
