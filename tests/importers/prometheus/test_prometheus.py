"""Histories from Prometheus: what was counted comes back, from the real server."""

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.importers.prometheus.client import Prometheus
from capplan.importers.prometheus.history import ask, spread

END_S = 1_700_006_400.0
"""A whole hour."""
HOURS = 30
SPACING_S = 15


def per_s(at_s):
    """Requests a second, constant within an hour."""
    return 4 + (int(at_s // 3600) % 24)


def samples(name, labels, begin_s, value):
    """Lines of one series, a value every 15 s."""
    for tick in range(HOURS * 3600 // SPACING_S + 1):
        at = begin_s + tick * SPACING_S
        yield f"{name}{{{labels}}} {value(at):.6f} {at:.0f}"


def answered(begin_s):
    """Requests answered by a moment."""

    def value(at_s):
        hours = int((at_s - begin_s) // 3600)
        whole = sum(per_s(begin_s + 3600 * hour) * 3600 for hour in range(hours))
        return whole + per_s(at_s) * ((at_s - begin_s) % 3600)

    return value


def history(counter, histograms, labels='model_name="m"'):
    begin = END_S - HOURS * 3600
    done = answered(begin)
    family = counter.removesuffix("_total")
    lines = [f"# TYPE {family} counter", *samples(counter, labels, begin, done)]
    for name in histograms:
        lines.append(f"# TYPE {name} histogram")
        below = np.cumsum([0.3, 0.6, 0.1])
        for bound, share in zip(("10.0", "100.0", "+Inf"), below, strict=True):
            own = f'{labels},le="{bound}"'
            lines += samples(f"{name}_bucket", own, begin, lambda at, s=share: done(at) * s)
        lines += samples(f"{name}_sum", labels, begin, lambda at: done(at) * 50)
        lines += samples(f"{name}_count", labels, begin, done)
    return "\n".join(lines) + "\n# EOF\n"


VLLM = ("vllm:request_prompt_tokens", "vllm:request_generation_tokens")
SGLANG = ("sglang:prompt_tokens_histogram", "sglang:generation_tokens_histogram")


@pytest.mark.prometheus
@pytest.mark.parametrize(
    ("counter", "histograms", "engine"),
    [
        ("vllm:request_success_total", VLLM, "vLLM"),
        ("sglang:num_requests_total", SGLANG, "SGLang"),
        ("trtllm_request_success_total", (), "TensorRT-LLM"),
    ],
)
def test_rates_and_buckets_come_back_from_a_real_server(served, counter, histograms, engine):
    url = served(history(counter, histograms))

    reading = ask(url, window_s=14 * 86_400, end_s=END_S)

    rates = reading.rates
    begin = END_S - HOURS * 3600
    assert reading.files[0].format == f"Prometheus, {engine}"
    assert rates.kinds == ("m",)
    assert rates.step_s == 60
    hours = rates.rate_per_s[0, : HOURS * 60].reshape(HOURS, 60)
    expected = [per_s(begin + 3600 * hour) for hour in range(HOURS)]
    # rate() sees the samples inside a minute and stretches them to its edges.
    assert np.median(hours, axis=1) == pytest.approx(expected, rel=1e-6)
    if not histograms:
        assert rates.seen == (None,)
        return
    prompt = rates.seen[0].prompt
    assert prompt.mean_tokens == pytest.approx(50)
    within = [prompt.weight[prompt.tokens <= 10].sum(), prompt.weight[prompt.tokens < 100].sum()]
    assert np.array(within) / prompt.weight.sum() == pytest.approx([0.3, 0.9], abs=0.01)


@pytest.mark.prometheus
def test_two_models_are_two_classes_and_a_selector_takes_one(served):
    both = history("vllm:request_success_total", ()).removesuffix("# EOF\n")
    begin, labels = END_S - HOURS * 3600, 'model_name="n"'
    both += "\n".join(samples("vllm:request_success_total", labels, begin, lambda at: at - begin))
    url = served(both + "\n# EOF\n")

    assert set(ask(url, 86_400, end_s=END_S).rates.kinds) == {"m", "n"}
    assert ask(url, 86_400, labels, END_S).rates.kinds == ("n",)
    with pytest.raises(InputError, match="parse error"):
        ask(url, 86_400, "no labels", END_S)
    with pytest.raises(InputError, match="has none of these counters"):
        ask(url, 86_400, 'model_name="absent"', END_S)


def test_an_address_that_nobody_answers_is_said():
    with pytest.raises(InputError, match="cannot be reached"):
        ask("http://127.0.0.1:9", 3600)
    with pytest.raises(InputError, match="must begin with http"):
        Prometheus("file:///etc/passwd")


def test_a_bucket_keeps_its_requests_within_its_bounds():
    tokens, weight = spread([1.0, 10.0, 100.0, float("inf")], np.array([1.0, 3.0, 6.0, 2.0]))

    assert weight.sum() == pytest.approx(12)
    assert weight[tokens <= 1].sum() == pytest.approx(1)
    assert weight[(tokens > 1) & (tokens <= 10)].sum() == pytest.approx(3)
    assert tokens.max() == pytest.approx(100)
    assert weight[tokens >= 100].sum() == pytest.approx(2)
