# A job trains a batch of runs (docs/concepts.md). Because trainings are expensive, training code is
# no input of a run. A run that other code made is shown as stale (`moelaws runs --stale`).


# This comes before all else, so that code of a user's own study that cannot be imported fails
# within seconds and not after the last training.
rule check:
    input:
        code=lambda w: relative(of_study(JOBS.studies[w.study])),
    output:
        touch(FOLDER.imported("{study}")),
    log:
        RESULTS.log(FOLDER, "imported", "{study}", "check"),
    priority: 10**9
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        study=study_of,
    shell:
        "moelaws check {params.study:q} > {log} 2>&1"


rule train:
    input:
        # A run names its corpus by content. So with `ancient` a corpus made again trains nothing.
        ancient(lambda w: TRAININGS.corpora(w.batch)),
    output:
        RESULTS.batch("{batch}"),
    log:
        RESULTS.root / "logs/batches/{batch}.log",
    priority: lambda w: TRAININGS.priority(w.batch)
    conda:
        "../../envs/cpu.yaml"
    threads: lambda w: TRAININGS.threads(w.batch, workflow.cores)
    resources:
        **TRAININGS.resources(),
    params:
        runs=lambda w: str(RESULTS.batch_runs(w.batch)),
    # With exec the job ends when the trainer does. A shell in between would die of Slurm's SIGTERM
    # at once, and the job would end, and with it the trainer while it saves.
    shell:
        "export OMP_NUM_THREADS=$(( {threads} < {resources.workers} ? 1 : {threads} / {resources.workers} )); "
        "exec moelaws train {params.runs} "
        + f"{TRAININGS.device_options} "
        + ("--deterministic " if JOBS.project.deterministic else "")
        + "--workers {resources.workers} --runs-per-gpu {resources.runs_per_gpu} "
        "--devices {resources.devices} --nodes {resources.spans} --marker {output} > {log} 2>&1"
