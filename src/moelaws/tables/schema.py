"""The columns of a study's table: names as in the papers, units, meanings."""

from dataclasses import replace

from moelaws.spec.run import DESCRIBED_OPTIONS
from moelaws.tables.column import Column

_FLOPS = "training FLOPs of the run, "

COLUMNS: tuple[Column, ...] = (
    Column("run_id", "string", "1", "identity of the run: hash of its configuration"),
    Column("study", "string", "1", "study that asked for the run"),
    Column("tier", "string", "1", "tier of the grid: demo, workstation, gpu or paper"),
    Column("sweep", "string", "1", "the study's sweeps that ask for the run, joined by commas"),
    Column("source", "string", "1", "where the losses come from: trained, simulated or imported"),
    Column("status", "string", "1", "completed, diverged or out_of_memory"),
    Column("seed", "int", "1", "seed of initial weights and data order"),
    Column("kind", "string", "1", "moe, dense, or slice for experts on slices of the embedding"),
    Column("C", "float", "FLOP", "compute budget that the grid point names", nullable=True),
    Column("N_total", "int", "parameters", "all parameters, embeddings included"),
    Column("N_active", "int", "parameters", "N_total without the experts a token does not pass"),
    Column("N_total_nonemb", "int", "parameters", "N_total without embeddings"),
    Column("N_active_nonemb", "int", "parameters", "N_active without embeddings"),
    Column("C_6N", "float", "FLOP", _FLOPS + "6 N D with active, multiplying parameters"),
    Column("C_sparsity", "float", "FLOP", _FLOPS + "sparsity paper, Eq 9"),
    Column("C_allocation", "float", "FLOP", _FLOPS + "allocation paper, App C corrected"),
    Column("C_leverage", "float", "FLOP", _FLOPS + "leverage, App I corrected, and router"),
    Column("C_leverage_no_router", "float", "FLOP", _FLOPS + "leverage, App I corrected", True),
    Column("D", "int", "tokens", "training tokens"),
    Column("S", "float", "1", "sparsity (E - k) / E; 0 for dense"),
    Column("S_shared", "float", "1", "sparsity with shared experts in E and k, 1 - A; 0 for dense"),
    Column("A", "float", "1", "activation ratio (k + E_s) / (E + E_s); 1 for dense"),
    Column("G", "float", "1", "granularity 2 d_model / d_expert", nullable=True),
    Column("r", "float", "1", "feed-forward over attention FLOPs, allocation, App C corrected"),
    Column("E", "int", "experts", "routed experts a layer, or slices; 1 for dense"),
    Column("k", "int", "experts", "experts that a token passes in a layer; 1 for dense"),
    Column("E_s", "int", "experts", "shared experts a layer"),
    Column("n_layers", "int", "layers", "transformer blocks"),
    Column("n_dense_layers", "int", "layers", "blocks without experts; n_layers for dense"),
    Column("d_model", "int", "1", "width of the residual stream"),
    Column("n_heads", "int", "heads", "query heads"),
    Column("n_kv", "int", "heads", "key-value heads"),
    Column("d_expert", "int", "1", "hidden width of an expert; of the layers of a dense model"),
    Column("gates", "string", "1", "softmax over all experts, or over those selected; none", True),
    Column("context", "int", "tokens", "sequence length"),
    Column("vocab_size", "int", "tokens", "entries of the vocabulary"),
    Column("lr", "float", "1", "peak learning rate"),
    Column("batch_tokens", "int", "tokens", "tokens an optimizer step"),
    Column("steps", "int", "steps", "optimizer steps asked for"),
    Column("epochs", "float", "1", "passes over the training text"),
    Column("L", "float", "nats/token", "validation loss", nullable=True),
    Column("L_se", "float", "nats/token", "its standard error, by document", nullable=True),
    Column("L_seed_sd", "float", "nats/token", "standard deviation of L over seeds", nullable=True),
    Column("n_seeds", "int", "runs", "completed runs that differ in their seed alone"),
    Column("bpb", "float", "bits/byte", "validation loss by bytes of text", nullable=True),
    Column("L_train", "float", "nats/token", "training loss, last tenth of steps", nullable=True),
    Column("balance_cv", "float", "1", "coefficient of variation of tokens per expert", True),
    Column("balance_entropy", "float", "1", "entropy of the experts' load over ln E", True),
    Column("balance_kl", "float", "nats", "KL of the experts' load to uniform", True),
    Column("overflow", "float", "1", "share of assignments over capacity (factor 1.25)", True),
    Column("unused", "float", "1", "share of capacity left empty (factor 1.25)", True),
    Column("never_used", "int", "experts", "experts without a token, all layers", True),
    Column("seconds", "float", "s", "training and evaluation time"),
    Column("tokens_per_second", "float", "tokens/s", "speed of the training loop"),
    Column("peak_memory", "float", "bytes", "peak memory of the process or device"),
    Column("code", "string", "1", "digest of the training code that made the run"),
)

# The columns of this project's own runs, whose records have some more.
CORPUS = Column("corpus", "string", "1", "name of the text that the run is on")
TRUNK = Column(
    "trunk", "string", "1", "what runs with steps in common share; else the run_id", True
)
TRAINED_COLUMNS: tuple[Column, ...] = (
    *COLUMNS,
    CORPUS,
    TRUNK,
    Column("L_beyond", "float", "nats/token", "loss beyond the context, in longer sequences", True),
    Column(
        "L_paired_se",
        "float",
        "nats/token",
        "standard error of L among the runs of its budget, paired by document",
        nullable=True,
    ),
    Column(
        "route_by",
        "string",
        "1",
        "what one routing decision is for: token, chunk, position (of a chunk), or none",
    ),
    Column("load_balance", "float", "1", "weight of the load-balancing loss", nullable=True),
    Column("balance", "string", "1", "what evens the experts' load: loss, bias or none", True),
    Column("gate", "string", "1", "what makes scores of logits: softmax or sigmoid", True),
    Column("capacity_factor", "float", "1", "beyond which assignments are dropped", True),
    Column("dropped", "float", "1", "share of assignments that were dropped", True),
    Column("warmup", "float", "1", "fraction of the steps that warm up", nullable=True),
    Column("optimizer", "string", "1", "adamw or muon", nullable=True),
    *(Column(name, "float", "1", text, True) for name, text in DESCRIBED_OPTIONS.items()),
    Column("shuffle", "string", "1", "tokens where each document's are shuffled, else none", True),
    Column("recipe", "string", "1", "what runs that differ in sparsity and seed alone share", True),
    Column("chunk", "int", "positions", "that share a routing decision; 0 where none is made"),
    Column("slice_positions", "string", "1", "that an expert on a slice sees: all, chunks or none"),
)

# Only a training has values of these: in a simulated table they are missing.
_OF_A_TRAINING = ("epochs", "seconds", "tokens_per_second", "peak_memory", "code")
SIMULATED_COLUMNS: tuple[Column, ...] = tuple(
    replace(c, nullable=c.nullable or c.name in (*_OF_A_TRAINING, "corpus"))
    for c in (*COLUMNS, CORPUS, TRUNK)
)

# The file of somebody else's runs need not have more than these.
_REQUIRED = ("run_id", "study", "source", "status")
IMPORTED_COLUMNS: tuple[Column, ...] = tuple(
    replace(c, nullable=c.nullable or c.name not in _REQUIRED) for c in COLUMNS
)
