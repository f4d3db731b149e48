"""A dense model's step: against a sum made by hand of rows of the tables."""

import numpy as np
import pytest

from capplan.physics.load import decode_load, prefill_load
from deployed import deployed
from published import NEEDED, fastest_s

pytestmark = NEEDED
LAYERS = 80
ENGINES = ("vllm/0.24.0", "sglang/0.5.14", "trtllm/1.3.0rc20")


def product_s(m, n, k):
    files = (f"h200_sxm/gemm/{engine}/gemm" for engine in ENGINES)
    return min(fastest_s(file, gemm_dtype="bfloat16", m=m, n=n, k=k) for file in files)


def between_s(m, n, k, below, above):
    """A width between two of the table's, by hand."""
    share = (n - below) / (above - below)
    return (1 - share) * product_s(m, below, k) + share * product_s(m, above, k)


@pytest.fixture(scope="module")
def llama():
    return deployed("llama-3.1-70b", engine="vllm", split=(4, 4, 1))


def test_every_part_of_a_step_is_the_sum_of_its_rows(llama):
    # Llama-3.1-70B on four GPUs: 16 heads with 2 of keys and values, width 7168, vocabulary 32064.
    heads = {"num_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "window_size": 0}
    read_s = fastest_s(
        "h200_sxm/attention/vllm/0.24.0/generation_attention",
        kv_cache_dtype="bfloat16", batch_size=64, step=4095, **heads,
    )  # fmt: skip
    sum_s = fastest_s(
        "h200_sxm/comm/vllm/0.24.0/custom_allreduce", num_gpus=4, message_size=64 * 8192
    )
    parts = llama.parts_s(decode_load(64, 4096, 1))
    projections_s = product_s(64, 2560, 8192) + product_s(64, 8192, 2048)
    assert parts["attention"] == pytest.approx(LAYERS * (projections_s + read_s))
    up_s = between_s(64, 14336, 8192, 12288, 16384)
    assert parts["dense"] == pytest.approx(LAYERS * (up_s + product_s(64, 8192, 7168)))
    assert parts["all_reduce"] == pytest.approx(LAYERS * 2 * sum_s)
    # The table ends at 65536 outputs, with none between 16384 and 51200.
    assert parts["head"] == pytest.approx(between_s(64, 32064, 8192, 16384, 51200))
    assert llama.step_s(decode_load(64, 4096, 1)) == pytest.approx(sum(parts.values()))


def test_small_kernels_take_a_little_and_the_host_half_a_millisecond(llama):
    parts = llama.parts_s(decode_load(64, 4096, 1))
    assert parts["fixed"] == 0.5e-3
    assert 0.02 < parts["small"] / llama.step_s(decode_load(64, 4096, 1)) < 0.1


def test_a_step_takes_longer_than_reading_the_weights(llama):
    # 70.6e9 parameters of two bytes at 4.8 TB/s on each of four GPUs, without the embedding.
    read_s = (70.6e9 - 128256 * 8192) * 2 / 4 / 4.8e12
    step_s = llama.step_s(decode_load([1, 16, 64], 1024, 1))
    assert (step_s > read_s).all()
    assert step_s[0] < 2 * read_s


def test_time_rises_with_context_in_proportion_to_the_cache(llama):
    contexts = np.array([8192, 16384, 32768])
    step_s = llama.step_s(decode_load(64, contexts, 1))
    # 80 layers, 2 heads of 128 keys and as many values of two bytes, 64 sequences.
    read_s = np.diff(contexts) * 64 * LAYERS * 2 * 2 * 128 * 2 / 4.8e12
    assert np.diff(step_s) / read_s == pytest.approx([1.08, 1.08], abs=0.06)


def test_verification_reads_the_cache_once(llama):
    attended = [llama.parts_s(decode_load(32, 32768, query))["attention"] for query in (1, 4)]
    assert attended[1] == pytest.approx(attended[0], rel=0.05)


def test_drafts_count_as_tokens_everywhere_else(llama):
    four, verified = (llama.parts_s(decode_load(*load)) for load in ((128, 2048, 1), (32, 2048, 4)))
    for part in ("dense", "all_reduce", "head"):
        assert verified[part] == pytest.approx(four[part])


def test_a_chunk_beside_the_batch_costs_less_than_alone(llama):
    batch, chunk = llama.step_s(decode_load(32, 2048, 1)), llama.step_s(prefill_load(4096, 0))
    both = llama.step_s(decode_load(32, 2048, 1, 4096))
    assert max(batch, chunk) < both < batch + chunk


def test_a_small_chunk_waits_for_its_host(llama):
    small, smaller = (llama.step_s(prefill_load(tokens, 0)) for tokens in (16, 8))
    assert small == pytest.approx(llama.launching_s)
    assert smaller == pytest.approx(small)
    assert llama.step_s(prefill_load(8192, 0)) > 2 * llama.launching_s


def test_cached_tokens_of_a_prompt_cost_attention_alone(llama):
    new, cached = (llama.parts_s(prefill_load(4096, tokens)) for tokens in (0, 8192))
    assert cached["dense"] == new["dense"]
    # Pairs of tokens: 4096 · 8192 more, beside 4096² / 2 at first.
    assert cached["attention"] > new["attention"]


def test_outside_the_tables_there_is_no_time(llama):
    assert np.isnan(llama.step_s(decode_load(4096, 2048, 1)))
    assert np.isnan(llama.step_s(decode_load(1, 10**6, 1)))
    assert np.isnan(llama.step_s(prefill_load(10**5, 0)))


def test_sources_name_file_and_rows(llama):
    where = [source.where for source in llama.sources]
    assert len(llama.sources) == len({source.model_dump_json() for source in llama.sources})
    assert any("h200_sxm/gemm/vllm/0.24.0" in text and "n=2560, k=8192" in text for text in where)
    assert {source.licence for source in llama.sources} == {"Apache-2.0", None}


def test_interpolated_widths_state_their_error(llama):
    assert 0 < llama.term_error["dense"] < 0.1
    assert llama.term_error["all_reduce"] == 0
