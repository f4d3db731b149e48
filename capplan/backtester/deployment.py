"""What deployment a served row describes."""

from dataclasses import dataclass
from math import isqrt
from typing import Final

from capplan.backtester.tpot import Requests
from capplan.physics.sharding import Split
from capplan.records.architecture import Architecture, Moe
from capplan.records.served import ServedRow

NODE: Final = 8
"""GPUs of a node, and of the largest replica that the columns describe without doubt."""
PRECISIONS: Final = {"bf16": "bf16", "fp8": "fp8", "fp4": "nvfp4"}
FP8_CACHE: Final = ("trtllm",)
MODELOPT: Final = ("fp8", "nvfp4")
"""ModelOpt's checkpoints in these precisions ask for a cache in FP8, which TensorRT-LLM follows;
vLLM and SGLang keep 16 bits unless told otherwise."""
BALANCED: Final = ("trtllm",)
"""TensorRT-LLM holds prompts until each copy of attention has one (`enable_balance: true` in
`attention_dp_config`, with up to 60 steps of patience, in InferenceX's scripts)."""
DRAWN: Final = {(1024, 1024), (1024, 8192), (8192, 1024)}
"""Prompts and answers of InferenceX, whose benchmark draws each request's from 80 % of these up to
the whole (`--random-range-ratio 0.8`). Others run synthetic requests of one length."""


class UnclearError(Exception):
    """A row does not say what ran, or says what cannot be."""


@dataclass(frozen=True)
class Deployment:
    """What ran: a model in some precision on GPUs of one kind, and its requests in flight."""

    model: Architecture
    gpu: str
    engine: str
    split: Split
    weights: str
    experts: str | None
    cache: str


def is_sparse(model: Architecture) -> bool:
    """Whether it has routed experts."""
    return any(isinstance(kind.feed_forward, Moe) for kind in model.layer_kinds)


def deployment(row: ServedRow, model: Architecture) -> Deployment:
    """The deployment of a row.

    Raises:
        UnclearError: Pipelines, or more GPUs than one replica of a node has.
    """
    sparse = is_sparse(model)
    matrices = _precision(row.matrices, row, model, sparse=sparse)
    experts = _precision(row.experts, row, model, sparse=sparse) if sparse else None
    return Deployment(
        model=model,
        gpu=row.gpu,
        engine=row.engine,
        split=split(row, sparse=sparse),
        weights=matrices,
        experts=experts,
        cache="fp8" if row.engine in FP8_CACHE and matrices in MODELOPT else "bf16",
    )


def split(row: ServedRow, *, sparse: bool) -> Split:
    """The layout that the columns mean.

    Rows in which a width of attention is the product of two equal widths of the experts were
    written by multiplying one number with itself: their names say tp8 ep8 where the columns say
    64, 8 and 8. Where copies of attention are left blank, experts may still be shared by more GPUs
    than attention is.

    Raises:
        UnclearError: As in `deployment`.
    """
    if row.pipeline > 1:
        raise UnclearError(f"pipelines of {row.pipeline} are not composed")
    slices, groups = row.expert_slices or 1, row.expert_groups or 1
    attention = row.tensor * (row.attention_copies or 1)
    if attention > NODE and attention == slices * groups and slices == groups:
        attention = isqrt(attention)
        slices, tensor = 1, 1 if row.attention_copies not in {None, 1} else attention
    else:
        tensor = row.tensor
    gpus = max(attention, slices * groups) if sparse else attention
    if gpus > NODE:
        raise UnclearError(f"{gpus} GPUs are several nodes or several replicas, which no row tells")
    if gpus % tensor or (sparse and gpus % groups):
        raise UnclearError(f"{gpus} GPUs do not divide into TP {tensor} and EP {groups}")
    return Split(gpus, tensor, groups if sparse else 1)


def requests_of(row: ServedRow, layout: Split) -> Requests:
    """What is in flight in the whole replica.

    Rows count the requests of one copy of attention. Where copies are given and yet the name has
    the same number (c32 beside 64 copies and a batch of 32), nothing was divided.
    """
    whole = row.attention_copies is not None and f"_c{row.batch_size}_" in row.name
    copies = 1 if whole else row.attention_copies or layout.copies
    return Requests(
        in_flight=row.batch_size * copies,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        alike=(row.input_tokens, row.output_tokens) not in DRAWN,
        held_for=layout.copies if row.engine in BALANCED else 1,
    )


def _precision(said: str | None, row: ServedRow, model: Architecture, *, sparse: bool) -> str:
    """A precision by its name here.

    FP8 of sparse models is stored in blocks of 128 by 128 by DeepSeek, Qwen and Z.ai, whatever the
    column for matrices calls it; a blank is what the checkpoint's name says, 16 bits if nothing.
    """
    named = next((found for found in PRECISIONS if found in row.checkpoint.lower()), "bf16")
    found = said or PRECISIONS.get(row.precision or named, row.precision or named)
    if found == "fp8" and sparse:
        stored = model.stored.scheme if model.stored is not None else ""
        return "fp8" if "fp8" in stored and "blocks" not in stored else "fp8_block"
    return found
