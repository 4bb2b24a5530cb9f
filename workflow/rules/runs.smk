# Training code is no input of a run, for trainings are expensive: a run that other code made is
# shown as stale (`moelaws runs --stale`).


rule train:
    input:
        # The run names its corpus by content; ancient: a corpus made again trains nothing again.
        ancient(
            lambda w: RESULTS.corpus(JOBS.runs[w.run].config.corpus.corpus_id)
            / "meta.json"
        ),
    output:
        # update: a finished summary is not removed when a job starts that finds it there, such as
        # a second copy of the same run after a kill -9 of Snakemake; the trainer returns it.
        update(RESULTS.summary("{run}")),
    log:
        RESULTS.run("{run}") / "log",
    group:
        pack
    conda:
        "../../envs/cpu.yaml"
    threads: training_threads
    resources:
        **training_resources("train"),
    params:
        config=lambda w: JOBS.runs[w.run].config.canonical_json(),
        # Of a run that ended out of memory: a text not seen yet, so that this call tries it again.
        lacked_memory=lambda w: JOBS.lacked_memory(w.run),
    # exec: the job ends when the trainer does. A shell between them would die of Slurm's SIGTERM at
    # once and end the job, and the trainer with it, while it saves.
    shell:
        f"{TRAIN} <<< {{params.config:q}} >> {{log}} 2>&1"


if JOBS.weights():
    # Not where no run keeps weights on the way: one parameter more would be one changed.
    KEEP_STEPS = {}
    if any(JOBS.all_kept.values()):
        KEEP_STEPS["keep_steps"] = lambda w: JOBS.keep_steps(w.run)

    ruleorder: train_and_keep > train

    # The runs whose weights a study keeps. A run that has none worth keeping, for it diverged or
    # lacked memory, says so. A folder as output would be copied before each job.
    rule train_and_keep:
        input:
            ancient(
                lambda w: RESULTS.corpus(JOBS.runs[w.run].config.corpus.corpus_id)
                / "meta.json"
            ),
        output:
            update(RESULTS.summary("{run}")),
            # Written after the weights beside it.
            update(RESULTS.kept("{run}")),
        log:
            RESULTS.run("{run}") / "log",
        wildcard_constraints:
            run="|".join(JOBS.all_kept),
        group:
            pack
        conda:
            "../../envs/cpu.yaml"
        threads: training_threads
        resources:
            **training_resources("train_and_keep"),
        params:
            **KEEP_STEPS,
            config=lambda w: JOBS.runs[w.run].config.canonical_json(),
            lacked_memory=lambda w: JOBS.lacked_memory(w.run),
        shell:
            f"{TRAIN} --keep-weights "
            + ("{params.keep_steps} " if KEEP_STEPS else "")
            + "<<< {params.config:q} >> {log} 2>&1"
