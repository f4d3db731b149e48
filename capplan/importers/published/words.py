"""What sources say in words: GPUs, engines, drafters, trees, precisions.

Sources name hardware and methods in free text. What is recognised is listed here; anything else is
not known, and the row's prediction is refused for it.
"""

import re
from dataclasses import dataclass
from typing import Final

GPUS: Final = (
    "GB300", "GB200", "B300", "B200", "H200", "H800", "H100", "H20", "A800", "A100-40", "A100",
    "L40S", "L40", "RTX PRO 6000", "RTX 5090",
)  # fmt: skip
"""As sold; the longer of two names that begin alike comes first."""
ENGINES: Final = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "trtllm",
    "llama.cpp": "llama.cpp",
}
DRAFTERS: Final = (
    (re.compile(r"draft(?: model)? ([A-Z][\w.]*-[\w.]+B)\b"), None),
    (re.compile(r"eagle-?3", re.IGNORECASE), "eagle3"),
    (re.compile(r"eagle", re.IGNORECASE), "eagle"),
    (re.compile(r"\bmtp|nextn", re.IGNORECASE), "mtp"),
    (re.compile(r"n-?gram|lookahead|\bPLD\b", re.IGNORECASE), "ngram"),
)
WEIGHTS: Final = (
    (re.compile(r"NVFP4|\bFP4", re.IGNORECASE), "nvfp4"),
    (re.compile(r"\bFP8", re.IGNORECASE), "fp8"),
    (re.compile(r"\bQ4_|int4|AWQ|W4A16", re.IGNORECASE), "int4"),
    (re.compile(r"\bbf16", re.IGNORECASE), "bf16"),
)
STEPS: Final = re.compile(r"(?:(\d+) steps|steps (\d+)),? top-?k (\d+)(?:,| draft) ?(\d+)")
SWEEP: Final = re.compile(r"batch sweep (\d+)\.\.(\d+)")
SPARSE: Final = re.compile(r"-A\d+(\.\d+)?B|\bMoE\b|experts|deepseek-(v|r)", re.IGNORECASE)
SPAN: Final = re.compile(r"(\d+)\s*[-–]\s*(\d+)")


@dataclass(frozen=True)
class Tree:
    """Shape of a round's drafting."""

    passes: int
    beams: int
    drafts: int


def gpu(hardware: str | None) -> tuple[str | None, int]:
    """The GPU and how many, 1 where none is said."""
    text = hardware or ""
    name = next((one for one in GPUS if re.search(rf"(?<![A-Z]){one}(?!\d)", text)), None)
    number = re.search(r"\b(\d+)\s*x\s*(?=[A-Z])", text) or re.search(r"\bTP\s?(\d+)", text)
    return name, int(number[1]) if number else 1


def engine(text: str | None) -> str | None:
    """The engine; the first word where it is none of those with tables."""
    lower = (text or "").lower()
    return next((ours for theirs, ours in ENGINES.items() if theirs in lower), lower or None)


def drafter(*texts: str | None) -> str | None:
    """Kind of drafter, or the model that drafts; the first text that names one counts."""
    for text in texts:
        for pattern, kind in DRAFTERS:
            if found := pattern.search(text or ""):
                return kind or found[1]
    return None


def weights(*texts: str | None) -> str | None:
    """Precision of the weights."""
    for text in texts:
        for pattern, name in WEIGHTS:
            if pattern.search(text or ""):
                return name
    return None


def tree(*texts: str | None) -> Tree | None:
    """Steps, beams and drafts of a tree, as SGLang's options name them."""
    for text in texts:
        if found := STEPS.search(text or ""):
            return Tree(int(found[1] or found[2]), int(found[3]), int(found[4]))
    return None


def batches(batch: object, text: str | None) -> tuple[int, ...]:
    """One batch, those of a range whose best was published, or none."""
    if isinstance(batch, int):
        return (batch,)
    found = SPAN.fullmatch(batch) if isinstance(batch, str) else SWEEP.search(text or "")
    if found is None:
        return ()
    low, high = int(found[1]), int(found[2])
    powers = (2**power for power in range(20))
    return tuple(sorted({low, *(one for one in powers if low < one < high), high}))


def context(text: object) -> int | None:
    """Tokens of a context written as 4K."""
    found = re.fullmatch(r"(\d+)\s*[Kk]", text) if isinstance(text, str) else None
    return int(found[1]) * 1024 if found else None


def sparse(model: str | None) -> bool:
    """Whether a model's name says that it has routed experts."""
    return bool(SPARSE.search(model or ""))
