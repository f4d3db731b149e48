"""What docs/validation.md says between its tables."""

from typing import Final

HEAD: Final = """\
# Predictions beside published measurements

Written by `make validation`; every figure comes from `capplan backtest`'s own code. Errors are
absolute and part of the measured value, over the rows that were predicted. Data was split: errors
of one half were looked at while the physics was built, the other half was held out and is shown
beside it. It is not wholly unseen: some ideas of the composition came from an earlier attempt that
had seen every served row. Served rows are split by checkpoint, GPU and engine together, published
rounds by their names (SHA-1, even or odd). Layers of experts are tested on routings that the layer
was not fitted to."""
SHIPPED: Final = """\
This page was made of the data that ships alone, one in eight of the served rows."""
SERVED: Final = """\
## Decode time a token of served models

Closed loops: so many requests always in flight, the mean time per output token after the first.
Rows are those that NVIDIA keeps as silicon data of its AIConfigurator (Apache-2.0): TensorRT-LLM,
SGLang and vLLM on H100, H200, B200, B300 and GB200. `capplan backtest` composes each row's
deployment of operator tables and takes the prompts of others into account
(`backtester/tpot.py`). Nothing is fitted to served rows.

![Predicted against served time a token](figures/validation/served.svg)"""
CHOSEN: Final = """\
What was chosen after seeing errors of the half built on, none of it a constant of a model:

- Lengths. InferenceX draws them (`--random-range-ratio 0.8`), so its prompts come one at a time;
  the other rows' are taken as equal, and their prompts share steps. That split was made after
  equal lengths everywhere left 14.0 % and drawn ones everywhere 21.5 % on sparse models; with it
  12.1 % were left then. The setting is InferenceX's own, that other rows are equal an inference.
- Columns. Widths of attention that are the product of two equal widths of experts (64, 8 and 8)
  are read as one of them: their rows are named tp8 ep8. `batch_size` is per copy of attention:
  rows named c256 have 4 beside 64 copies.
- Precision. `fp8` of sparse models is in blocks of 128 by 128, as their makers store it, and a
  blank is what the checkpoint's name says. TensorRT-LLM keeps the cache in FP8 for ModelOpt's
  checkpoints.
- A step of prefill has no table beyond 16,384 tokens: copies that prefill together are taken to
  need their part of it.
- What docs/method.md lists of the composition itself: kernels outside graphs, and that different
  sequences share experts as Cohere saw. (That default was set on the half built on, where sparse
  models went from 12.6 to 10.5 %; on the half held out they went from 13.5 to 13.9 %.)
- TensorRT-LLM gathers a prompt for each copy of attention (`enable_balance`, which InferenceX
  sets).

The half held out is the harder one, and what it misses is where the physics stands. It holds most
of what the other half has little or none of: SGLang on B200 and B300, small dense models, and 260
rows that leave the precision blank, which are read as 16 bits though some of their neighbours are
in FP8 or NVFP4. Its figures were first looked at when this page was first made, model by model.
One thing was changed then: a row named c32 has a batch of 32 beside 64 copies and was predicted
eleven times too long as 2,048 requests; it is read as 32. Before, the mean error of the sparse
rows held out was 22.8 %, the median the same.

DeepSeek under two versions of TensorRT-LLM is refused since: the changelog of InferenceX, whose
runs these are, says that it ran 1.2.0rc6.post3 with multi-token prediction alone, and
1.1.0rc2.post2 both with and without it, and no column says which. That was looked up because those
rows of the half held out came out a third to two thirds too long, while others of the same
deployment agreed. With them, sparse models have a median error of 16.0 % and a mean of 21.1 % over
all rows.

Known misses of the half built on, left as they are: vLLM 0.12.0 serves Qwen3-235B-A22B in blocks of
FP8 on H200 in 34 to 58 ms a step whatever the batch, where the kernels of 0.24.0, the only ones
tabulated, take half; SGLang serves Qwen3.5-397B on H200 2 ms a step slower than its kernels, at any
batch up to 32."""
LAYERS: Final = """\
## Layers of experts

Fitted to evenly routed rows of NVIDIA's tables (aiconfigurator-core 0.12.0, Apache-2.0), tested on
rows routed by power laws: every layer that vLLM, SGLang and TensorRT-LLM were timed with on three
GPUs, in the newest version that timed it, up to 16,384 tokens and 256 ranks. The composition itself
is fitted to all power-law rows."""
ROUNDS: Final = """\
## Rounds of speculation

Speed-ups, and rounds over plain steps, of papers, engines' repositories and users' reports. The
files may not ship; they are summed up here. A pair is *decided* where its predicted range lies on
one side of 1. Where the source gives the plain step's time, that is taken.

![Predicted against measured speed-up](figures/validation/speed_ups.svg)"""
