"""RunConfig: all that decides the result of one training, and nothing else.

Device, back end, paths and names are not here. A new field must have a default and a default must
never change: ``run_id`` then keeps every run that was ever trained (golden ids are tested).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from moelaws.spec.base import Count, Fraction, Frozen, NonNegative, Positive, Whole


class DenseFFN(Frozen):
    """A SwiGLU feed-forward layer of width ``d_ffn``: no router, no experts."""

    kind: Literal["dense"]
    d_ffn: Count


class MoE(Frozen):
    """A dropless layer of ``n_experts`` routed SwiGLU experts, ``top_k`` of them active a token.

    ``n_experts`` counts the routed experts alone (E of the sparsity paper, without the
    ``n_shared`` that every token passes); all experts have the width ``d_expert``.
    """

    kind: Literal["moe"]
    n_experts: Count
    top_k: Count
    d_expert: Count
    n_shared: Whole = 0
    normalize_top_k: bool = True  # gates of the selected experts sum to 1
    load_balance: NonNegative = 0.01  # coefficient of the load-balancing loss
    router_z: NonNegative = 0.001  # coefficient of the router z-loss

    @model_validator(mode="after")
    def _routing_is_sound(self) -> MoE:
        if self.top_k > self.n_experts:
            raise ValueError(
                f"top_k = {self.top_k} is more than n_experts = {self.n_experts}; "
                "k must be at most E"
            )
        if self.top_k == 1 < self.n_experts and self.normalize_top_k:
            raise ValueError(
                "top_k = 1 with normalize_top_k makes every gate 1, so that the loss teaches the "
                "router nothing; set normalize_top_k: false"
            )
        return self

    @property
    def sparsity(self) -> float:
        """S = (E - k) / E, the sparsity paper's Eq 7 (routed experts)."""
        return (self.n_experts - self.top_k) / self.n_experts

    @property
    def activation(self) -> float:
        """A = (E_a + E_s) / (E + E_s), the leverage paper's formal activation ratio."""
        return (self.top_k + self.n_shared) / (self.n_experts + self.n_shared)


class Model(Frozen):
    """A decoder-only transformer: RMSNorm, RoPE, grouped-query attention, SwiGLU."""

    n_layers: Count
    d_model: Count
    n_heads: Count
    n_kv: Count  # key-value heads; n_heads for multi-head attention
    context: Count  # tokens a sequence
    vocab_size: Count
    ffn: Annotated[DenseFFN | MoE, Field(discriminator="kind")]
    qk_norm: bool = False
    tied_embeddings: bool = False
    rope_theta: Positive = 10_000.0
    init_std: Positive = 0.02

    @model_validator(mode="after")
    def _heads_divide(self) -> Model:
        if self.d_model % (2 * self.n_heads):
            raise ValueError(
                f"d_model = {self.d_model} with n_heads = {self.n_heads}: the head width must be "
                "a whole even number (RoPE rotates pairs)"
            )
        if self.n_heads % self.n_kv:
            raise ValueError(f"n_kv = {self.n_kv} must divide n_heads = {self.n_heads}")
        return self


class Text(Frozen):
    """UTF-8 text files by content: ``digest`` is over the names and bytes of all of them."""

    kind: Literal["text"] = "text"
    digest: str


class Corpus(Frozen):
    """The text, its tokenizer and its split, known before anything is tokenised."""

    source: Text
    # Entries of the byte-level BPE trained on the training documents; 257 hold the bytes and the
    # end of a document.
    vocab_size: Annotated[Count, Field(ge=257)]
    validation: Annotated[Fraction, Field(gt=0, lt=1)] = (
        0.05  # share of the text, by whole documents
    )
    seed: Whole = 0  # of the split and of the documents' order

    @property
    def corpus_id(self) -> str:
        """The corpus' identity, and its folder's name."""
        return self.fingerprint()


class AdamW(Frozen):
    """AdamW with decoupled decay.

    ``scale_free`` decouples the decay from the peak learning rate too: a step shrinks weights by
    ``weight_decay * lr_t / lr`` (the sparsity paper) instead of ``weight_decay * lr_t``.
    """

    lr: Positive  # peak learning rate
    beta1: Fraction = 0.9
    beta2: Fraction = 0.95
    eps: Positive = 1e-8
    weight_decay: NonNegative = 0.1
    scale_free: bool = False
    clip: NonNegative = 1.0  # global gradient norm; 0 is off


class Schedule(Frozen):
    """Linear warm-up, then cosine, or constant and decay (WSD); shares of all steps."""

    kind: Literal["cosine", "wsd"] = "cosine"
    warmup: Fraction = 0.02
    decay: Fraction = 0.1  # WSD: share of the steps that decay exponentially
    final: Fraction = 0.1  # last learning rate as a share of the peak

    @model_validator(mode="after")
    def _final_reachable(self) -> Schedule:
        if self.kind == "wsd" and self.final == 0:
            raise ValueError("final = 0 cannot be reached by wsd's exponential decay")
        return self


class Evaluation(Frozen):
    """The held-out measurement at the end; ``sequences`` whole contexts, the same for all runs."""

    sequences: Count = 512


class RunConfig(Frozen):
    """One training of one model. ``run_id`` is the identity that every record goes by."""

    model: Model
    corpus: Corpus
    steps: Count  # optimizer steps
    batch: Count  # sequences a step
    optimizer: AdamW
    schedule: Schedule = Schedule()
    balance_group: Count  # sequences over which the load-balancing loss is measured; divides batch
    precision: Literal["fp32", "bf16"] = "fp32"
    evaluation: Evaluation = Evaluation()
    max_epochs: Positive = 1.0  # passes over the training text that are allowed
    seed: Annotated[Whole, Field(lt=2**63)] = 0  # of the initial weights and the order of the data

    @model_validator(mode="after")
    def _consistent(self) -> RunConfig:
        if self.batch % self.balance_group:
            raise ValueError(
                f"balance_group = {self.balance_group} must divide batch = {self.batch}"
            )
        if self.corpus.vocab_size != self.model.vocab_size:
            raise ValueError(
                f"model.vocab_size = {self.model.vocab_size} differs from "
                f"corpus.vocab_size = {self.corpus.vocab_size}"
            )
        return self

    @property
    def run_id(self) -> str:
        """First 16 hex digits of SHA-256 over the canonical JSON."""
        return self.fingerprint()

    @property
    def tokens(self) -> int:
        """D: training tokens."""
        return self.steps * self.batch * self.model.context
