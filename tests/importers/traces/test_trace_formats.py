"""Every format is recognised by what it holds, and gives the requests that are in it."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.importers.traces.how import How
from capplan.importers.traces.layout import mapped
from capplan.importers.traces.ledger import Ledger
from capplan.importers.traces.read import read

DATA = Path(__file__).parent / "data"


def reading(*paths, mapping=None, skip_bad=0, **how):
    layout = None if mapping is None else mapped(mapping)
    kinds_by_file = how.pop("kinds_by_file", False)
    return read(list(paths), How(Ledger(skip_bad), layout, **how), kinds_by_file=kinds_by_file)


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "format_name", "count", "first"),
    [
        ("azure_2023_conv.csv", "Azure LLM inference trace", 200, (374, 44)),
        ("mooncake_synthetic.jsonl", "Mooncake trace", 40, (40160, 6)),
        ("aiperf.jsonl", "AIPerf request records", 10, None),
        ("guidellm.json", "guidellm report", 12, (94, 48)),
        ("vllm_bench.json", "vllm bench serve result", 16, None),
    ],
)
def test_files_of_the_programs_themselves(name, format_name, count, first):
    found = reading(DATA / name)

    (file,), trace = found.files, found.requests
    assert (file.format, file.rows, file.kept) == (format_name, count, count)
    assert (np.diff(trace.arrival_s) >= 0).all()
    if first is not None:
        assert (trace.prompt_tokens[0], trace.output_tokens[0]) == first


def test_azure_times_have_seven_digits_and_a_zone_or_none(tmp_path):
    header = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    old = written(tmp_path, "2023.csv", header + "2023-11-16 18:15:46.6805900,374,44\n" * 2)
    new = written(tmp_path, "2024.csv", header + "2024-05-10 00:00:00.0099301+00:00,2162,5\n" * 2)

    without, with_zone = reading(old), reading(new)

    # date -u -d '2023-11-16 18:15:46' +%s; date -u -d 2024-05-10 +%s
    assert without.requests.arrival_s[0] == pytest.approx(1700158546.68059, abs=1e-6)
    assert with_zone.requests.arrival_s[0] == pytest.approx(1715299200.0099301, abs=1e-6)
    assert "times without a zone were taken as UTC" in without.caveats
    assert "times without a zone were taken as UTC" not in with_zone.caveats
    with pytest.raises(InputError, match="a zone or none"):
        reading(old, new)


@pytest.mark.parametrize(
    "header",
    [
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Log Type",
    ],
)
def test_burstgpt_in_both_orders_of_its_columns(tmp_path, header):
    values = {
        "Timestamp": ("5", "45", "118"),
        "Session ID": ("1", "2", "3"),
        "Elapsed time": ("3.5", "1", "2"),
        "Model": ("ChatGPT", "ChatGPT", "GPT-4"),
        "Request tokens": ("472", "1087", "417"),
        "Response tokens": ("18", "0", "276"),
        "Total tokens": ("490", "1087", "693"),
        "Log Type": ("Conversation log",) * 3,
    }
    rows = [",".join(values[name][row] for name in header.split(",")) for row in range(3)]

    found = reading(written(tmp_path, "BurstGPT_1.csv", "\n".join([header, *rows]) + "\n"))

    trace = found.requests
    assert trace.kinds == ("ChatGPT", "GPT-4")
    assert trace.prompt_tokens.tolist() == [472, 417]  # the one without an answer is left out
    assert found.files[0].unanswered == 1
    assert not trace.dated
    assert any("whole seconds" in caveat for caveat in found.caveats)


def test_openai_responses_a_line_with_what_was_cached(tmp_path):
    lines = [
        json.dumps(
            {
                "id": "chatcmpl-1",
                "created": 1730419200 + second,
                "model": "m",
                "choices": [{"message": {"content": "never kept"}}],
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 10,
                    "prompt_tokens_details": {"cached_tokens": 64},
                },
            }
        )
        for second in range(5)
    ]

    found = reading(written(tmp_path, "log.jsonl", "\n".join(lines)))

    assert found.files[0].format == "OpenAI-style responses"
    assert found.requests.cached_tokens.tolist() == [64] * 5
    assert found.requests.kinds == ("m",)


def usage(start, requests):
    return {
        "start_time": start,
        "end_time": start + 3600,
        "results": [
            {
                "input_tokens": 1000 * requests,
                "output_tokens": 200 * requests,
                "input_cached_tokens": 500 * requests,
                "num_model_requests": requests,
                "model": "m",
            }
        ]
        if requests
        else [],
    }


def test_openai_usage_as_pages_and_as_a_table_says_rates_and_no_lengths(tmp_path):
    pages = {"object": "page", "data": [usage(3600 * n, n * 36) for n in range(1, 4)]}
    columns = "start_time,end_time,num_model_requests,model,input_tokens,output_tokens"
    rows = [f"{3600 * n},{3600 * n + 3600},{36 * n},m,{36000 * n},{7200 * n}" for n in (1, 2, 3)]

    as_json = reading(written(tmp_path, "usage.json", json.dumps(pages, indent=1)))
    as_csv = reading(written(tmp_path, "usage.csv", "\n".join([columns, *rows])))

    for found in (as_json, as_csv):
        assert found.requests is None
        assert found.rates.rate_per_s.tolist() == [[0.01, 0.02, 0.03]]
        assert found.rates.seen == (None,)
        assert any("1,000 prompt and 200 output tokens" in line for line in found.caveats)


def test_servegen_clients_are_added_up_and_their_lengths_weighted(tmp_path):
    for client, rate, length in ((0, 1.0, 100), (1, 3.0, 500)):
        lines = [f"{start},{rate},1,Gamma,1,1" for start in (0, 600, 1200)]
        written(tmp_path, f"chunk-{client}-trace.csv", "\n".join(lines))
        shares = {"input_tokens": f"{{{length}: 1.0}}", "output_tokens": "{7: 0.5, 9: 0.5}"}
        written(tmp_path, f"chunk-{client}-dataset.json", json.dumps({"0": shares}))

    found = reading(tmp_path)

    assert found.rates.rate_per_s.tolist() == [[4.0, 4.0, 4.0]]
    (seen,) = found.rates.seen
    assert seen.prompt.tokens.tolist() == [100, 500]
    assert seen.prompt.weight.tolist() == [1.0 * 1800, 3.0 * 1800]
    assert seen.output.weight.tolist() == [3600, 3600]


def test_servegen_hourly_rates_leave_missing_hours_unknown(tmp_path):
    text = "hour_from_start,mean_rps\n0,1.5\n1,2\n3,4\n"

    rates = reading(written(tmp_path, "hourly.csv", text)).rates

    assert rates.step_s == 3600
    assert np.isnan(rates.rate_per_s[0, 2])
    assert rates.rate_per_s[0, [0, 1, 3]].tolist() == [1.5, 2, 4]


def test_any_table_by_a_mapping_of_its_columns(tmp_path):
    table = "when,in,out,route,hit\n1715299200000,100,5,a,40\n1715299200500,200,6,b,0\n"
    lines = '{"t": {"ns": 1715299200000000000}, "i": 100, "o": 5}\n' * 3

    as_csv = reading(
        written(tmp_path, "a.csv", table),
        mapping="arrival=when,prompt=in,output=out,class=route,cached=hit",
    ).requests
    as_json = reading(
        written(tmp_path, "a.jsonl", lines), mapping="arrival=t.ns:ns,prompt=i,output=o"
    ).requests

    assert as_csv.arrival_s.tolist() == [1715299200.0, 1715299200.5]
    assert as_csv.kinds == ("a", "b")
    assert as_csv.cached_tokens.tolist() == [40, 0]
    assert as_json.arrival_s.tolist() == [1715299200.0] * 3


def test_parquet_by_the_names_of_its_columns(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    moments = pa.array([1715299200_000000, 1715299201_500000], pa.timestamp("us", "UTC"))
    columns = {"TIMESTAMP": moments, "ContextTokens": [10, 20], "GeneratedTokens": [1, 2]}
    pq.write_table(pa.table(columns), tmp_path / "trace.parquet")

    found = reading(tmp_path / "trace.parquet")

    assert found.files[0].format == "Azure LLM inference trace"
    assert found.requests.arrival_s.tolist() == [1715299200.0, 1715299201.5]
    assert found.requests.output_tokens.tolist() == [1, 2]


def test_gzip_is_seen_by_its_first_bytes(tmp_path):
    packed = tmp_path / "trace.csv"
    packed.write_bytes(gzip.compress((DATA / "azure_2023_conv.csv").read_bytes()))

    plain = reading(DATA / "azure_2023_conv.csv").requests
    assert reading(packed).requests.arrival_s.tolist() == plain.arrival_s.tolist()


def test_classes_by_file_are_named_by_what_their_names_do_not_share(tmp_path):
    text = (DATA / "azure_2023_conv.csv").read_text()
    paths = [written(tmp_path, f"trace_{name}.csv", text) for name in ("code", "conv")]

    assert reading(*paths, kinds_by_file=True).requests.kinds == ("code", "conv")


def test_rates_of_one_source_keep_the_lengths_of_another(tmp_path):
    hourly = written(tmp_path, "h.csv", "hour_from_start,mean_rps\n0,1\n1,2\n")

    found = reading(hourly, DATA / "azure_2023_conv.csv")

    assert found.rates is not None
    assert len(found.requests) == 200
    with pytest.raises(InputError, match="one source of rates"):
        reading(hourly, hourly)


def test_an_unknown_table_is_refused_with_the_option_that_helps(tmp_path):
    path = written(tmp_path, "x.csv", "a,b\n1,2\n")

    with pytest.raises(InputError, match=r"known by its columns, found a, b\n.*--map arrival="):
        reading(path)
    with pytest.raises(InputError, match=r"c: no such column\n.*its columns: a, b"):
        reading(path, mapping="arrival=a:s,prompt=b,output=c")
    with pytest.raises(InputError, match="is not JSON"):
        reading(written(tmp_path, "x.json", "{\n"))
    with pytest.raises(InputError, match="no such file"):
        reading(tmp_path / "absent.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="chunk-N-trace"):
        reading(tmp_path / "empty")
