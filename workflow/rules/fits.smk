# A fit depends on its table's content, its own entry in the study's YAML, and the code of the
# engine and of its law, but not on other laws.


rule fit:
    input:
        read_by("fits"),
    output:
        json=FOLDER.fit("{study}", "{name}"),
        draws=FOLDER.draws("{study}", "{name}"),
    log:
        log_file("fits"),
    conda:
        "../../envs/cpu.yaml"
    # Snakemake limits them to --cores.
    threads: lambda w: JOBS.fit_threads(w.study, w.name)
    params:
        study=study_of,
    shell:
        make("fits", "{wildcards.name}", "--threads {threads}", "{output.json}")
