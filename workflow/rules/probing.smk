# Measurements for derived tables: hidden states (`hidden: true`) and scores on tasks (`scores:
# true`) of the runs whose weights a study keeps, and the speed of configurations (`speed: true`).
# Unlike training code, probing code is an input of these rules, because they take only seconds or
# minutes.


rule probe:
    input:
        weights=RESULTS.batch("{batch}"),
        code=code("moelaws.probing.hidden"),
    output:
        RESULTS.probed("hidden", "{batch}"),
    log:
        RESULTS.root / "logs/hidden/{batch}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: lambda w: TRAININGS.threads(w.batch, workflow.cores) if HERE else 1
    resources:
        **TRAININGS.one_gpu,
        mem_mb=lambda w, attempt: max(2000, TRAININGS.resources()["mem_mb"](w, attempt)),
        runtime=30,
    params:
        runs=lambda w: str(RESULTS.batch_runs(w.batch)),
    shell:
        f"moelaws probe {{params.runs}} {TRAININGS.device_options} --marker {{output}} "
        "> {log} 2>&1"


rule make_tasks:
    input:
        ancient(RESULTS.corpus("{corpus}") / "meta.json"),
        files=JOBS.task_files(),
        code=code("moelaws.tasks.sources"),
    output:
        RESULTS.tasks("{corpus}"),
    log:
        RESULTS.root / "logs/tasks/{corpus}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        sources=shlex.join(JOBS.project.tasks),
        corpus=lambda w: str(RESULTS.corpus(w.corpus)),
    shell:
        "moelaws tasks {params.sources} --corpus {params.corpus:q} --out {output} > {log} 2>&1"


rule bench:
    input:
        weights=RESULTS.batch("{batch}"),
        tasks=lambda w: TRAININGS.tasks(w.batch),
        code=code("moelaws.probing.bench", "moelaws.tasks.sources"),
    output:
        RESULTS.probed("scores", "{batch}"),
    log:
        RESULTS.root / "logs/scores/{batch}.log",
    conda:
        "../../envs/cpu.yaml"
    # On this machine's GPUs so few at a time that none waits for another with its cores.
    threads: lambda w: TRAININGS.threads(w.batch, workflow.cores) if HERE else 1
    resources:
        **TRAININGS.one_gpu,
        mem_mb=lambda w, attempt: max(2000, TRAININGS.resources()["mem_mb"](w, attempt)),
        runtime=60,
    params:
        runs=lambda w: str(RESULTS.batch_runs(w.batch)),
    shell:
        f"moelaws bench {{params.runs}} {TRAININGS.device_options} --marker {{output}} "
        "> {log} 2>&1"


rule measure_speed:
    input:
        code=lambda w: JOBS.code("speed", w.study),
    output:
        FOLDER.speed("{study}"),
    log:
        RESULTS.log(FOLDER, "speed", "{study}", "measure"),
    conda:
        "../../envs/cpu.yaml"
    # All cores of this machine, so that Snakemake runs nothing beside it, which would slow what is
    # timed. torch uses only as many as a training, so that the speed is that of a run. On a cluster
    # it is a separate job and needs no other cores.
    threads: lambda w: workflow.cores if HERE else 1
    resources:
        **TRAININGS.one_gpu,
        # All models are in memory at the same time.
        mem_mb=lambda wildcards, attempt: sum(
            TRAININGS.requests.memory_mb([run], attempt)
            for run in TRAININGS.timed(wildcards.study)
        ),
        runtime=120,
        timing_threads=lambda w: TRAININGS.timing_threads(w.study, workflow.cores),
    params:
        runs=lambda w: TRAININGS.timed(w.study),
        study=study_of,
    shell:
        "export OMP_NUM_THREADS={resources.timing_threads}; "
        "moelaws speed --study {params.study:q} "
        + SETTINGS
        + f" {TRAININGS.device_options} "
        "--out {output} > {log} 2>&1"
