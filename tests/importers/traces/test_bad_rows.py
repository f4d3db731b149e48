"""Bad rows are named with their line, and read over only where the user says how many."""

import contextlib
import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_trace_formats import reading, written

from capplan.errors import InputError
from capplan.importers.traces.layout import mapped
from capplan.importers.traces.prefixes import PrefixCache

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
GOOD = "2024-05-10 00:00:0{},100,10\n"


def azure(tmp_path, *rows):
    text = AZURE + GOOD.format(0) + "".join(row + "\n" for row in rows) + GOOD.format(9)
    return written(tmp_path, "trace.csv", text)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("2024-05-10 00:00:01,-5,10", "ContextTokens: must be a whole number of tokens"),
        ("2024-05-10 00:00:01,5,1.5", "GeneratedTokens: must be a whole number of tokens"),
        ("2024-05-10 00:00:01,,10", "at least 0, found nothing"),
        ("2024-05-10 00:00:01,1e99,10", "ContextTokens: must be a whole number of tokens"),
        ("2024-05-10 00:00:01,100", "must have 3 cells, as the header, found 2"),
        ("2024-05-10 00:00:01+02:00,100,10", "has a zone where the first row has none"),
        ("yesterday,100,10", "TIMESTAMP: must be a time like"),
        ("now,100,10", "TIMESTAMP: must be a time like"),
        ("2024-13-10 00:00:01,100,10", "TIMESTAMP: must be a time like"),
        ("NaT,100,10", "TIMESTAMP: must be a time like"),
    ],
)
def test_a_bad_row_is_named_and_can_be_read_over(tmp_path, row, said):
    path = azure(tmp_path, row)

    with pytest.raises(InputError) as caught:
        reading(path)
    assert f"{path}:3" in str(caught.value)
    assert said in str(caught.value)
    assert "--skip-bad 1 reads on" in str(caught.value)

    found = reading(path, skip_bad=1)
    assert (len(found.requests), found.files[0].bad, found.files[0].rows) == (2, 1, 3)


def test_the_line_is_that_of_the_file_behind_cells_of_several_lines(tmp_path):
    text = 'ts,prompt,in,out\n1,"two\nlines",5,5\n\n2,x,5,5\n3,y,-1,5\n'
    path = written(tmp_path, "log.csv", text)

    with pytest.raises(InputError, match=f"{path}:6: in: must be a whole number"):
        reading(path, mapping="arrival=ts:s,prompt=in,output=out")


def test_twenty_bad_rows_are_shown_and_more_are_counted_no_further(tmp_path):
    path = azure(tmp_path, *["2024-05-10 00:00:01,-5,10"] * 30)

    with pytest.raises(InputError) as caught:
        reading(path)
    assert len(caught.value.complaints) == 21
    assert "reading stopped here" in str(caught.value)
    assert reading(path, skip_bad=30).files[0].bad == 30
    with pytest.raises(InputError):
        reading(path, skip_bad=29)


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.95])
def test_a_gzip_that_breaks_off_is_a_bad_row_where_it_does(tmp_path, cut):
    rng = np.random.default_rng(1)
    rows = [
        f"2024-05-10 00:{n // 60:02}:{n % 60:02},{rng.integers(1, 9999)},5" for n in range(3000)
    ]
    data = gzip.compress((AZURE + "\n".join(rows) + "\n").encode())
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(data[: int(len(data) * cut)])

    with pytest.raises(InputError, match=rf"{path}:\d+: .*the gzip file breaks off"):
        reading(path)
    # What stands in the last, broken line is a bad row of its own.
    found = reading(path, skip_bad=2)
    assert found.requests.prompt_tokens.tolist() == [
        float(row.split(",")[1]) for row in rows[: len(found.requests)]
    ]


def test_lines_that_are_no_json_objects_are_bad(tmp_path):
    good = json.dumps({"timestamp": 5, "input_length": 7, "output_length": 2, "hash_ids": [1]})
    path = written(tmp_path, "m.jsonl", "\n".join([good, "{", "[1]", good.replace("7", "true")]))

    with pytest.raises(InputError) as caught:
        reading(path)
    text = str(caught.value)
    assert f"{path}:2:2: is not JSON" in text
    assert f"{path}:3: must be a JSON object" in text
    assert f"{path}:4: input_length: must be a whole number of tokens, at least 0" in text


def test_numbers_without_a_unit_are_refused_unless_they_can_be_only_one(tmp_path):
    text = "ts,in,out\n{},5,5\n{},5,5\n"
    ambiguous = written(tmp_path, "a.csv", text.format(12, 13))
    plain = "arrival=ts,prompt=in,output=out"

    with pytest.raises(InputError, match=f"{ambiguous}:2: ts: does not say its unit"):
        reading(ambiguous, mapping=plain)
    for number in ("1715299200", "1715299200000", "1715299200000000", "1715299200000000000"):
        path = written(tmp_path, "b.csv", text.format(number, number))
        assert reading(path, mapping=plain).requests.arrival_s[0] == 1715299200


def test_a_local_zone_is_applied_with_its_summer_time(tmp_path):
    from zoneinfo import ZoneInfo

    rows = ["2024-03-31 01:30:00,1,1", "2024-03-31 03:30:00,1,1"]
    path = written(tmp_path, "t.csv", AZURE + "\n".join(rows) + "\n")

    trace = reading(path, zone=ZoneInfo("Europe/Berlin")).requests

    # 01:30 CET is 00:30 UTC; 03:30 CEST is 01:30 UTC: an hour apart, not two.
    assert np.diff(trace.arrival_s).tolist() == [3600]
    assert trace.arrival_s[0] % 86_400 == 1800


@pytest.mark.parametrize(
    "text", ["arrival=a", "arrival=a,prompt=b,output=", "x=a", "arrival=a,arrival=b", ""]
)
def test_a_mapping_that_says_too_little_is_refused(text):
    with pytest.raises(InputError, match="--map"):
        mapped(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("a,a\n1,2\n", "column a stands twice"),
        (AZURE, "holds no request that was answered"),
        (AZURE + "2023-11-16 18:17:03,5,0\n", "holds no request that was answered"),
        (AZURE + "0001-01-01 00:00:00,5,6\n", "must lie between 1970 and 2100"),
        ('{"benchmarks": [{"requests": null}]}', "holds no request that was answered"),
        ('{"input_lens": 3, "output_lens": 4}', "run vllm bench serve with --save-detailed"),
        ('{"object": "page", "data": null}', "must hold data, a list of buckets"),
        ('{"object": "page", "data": []}', "needs buckets of one width"),
        ("hour_from_start,mean_rps\n1e300,5\n2,3\n", "must be a whole number of hours"),
        (
            '{"timestamp": 1, "input_length": 5, "output_length": 6, "hash_ids": [[1]]}',
            "must be a list of hashes",
        ),
    ],
)
def test_odd_files_are_refused_in_words(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        reading(written(tmp_path, "odd", text))


@given(
    st.sampled_from(["", AZURE, "hour_from_start,mean_rps\n", '{"benchmarks": ', "\x1f\x8b"]),
    st.one_of(st.binary(max_size=200), st.text(alphabet='0123456789,.-:"{}[]eT \n', max_size=200)),
)
@settings(max_examples=200)
def test_whatever_a_file_holds_is_read_or_refused(tmp_path_factory, start, rest):
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(start.encode("latin-1") + (rest.encode() if isinstance(rest, str) else rest))

    for mapping in (None, "arrival=TIMESTAMP,prompt=ContextTokens,output=GeneratedTokens"):
        with contextlib.suppress(InputError):
            found = reading(path, mapping=mapping, skip_bad=1000)
            assert found.rates is not None or len(found.requests) > 0


REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 10**12),
        st.integers(0, 10**6),
        st.integers(1, 10**6),
        st.sampled_from(["a", "b,c", 'd"', "e\nf"]),
    ),
    min_size=1,
    max_size=50,
)


@given(REQUESTS)
@settings(max_examples=50)
def test_what_is_written_as_csv_or_json_comes_back(tmp_path_factory, requests):
    import csv

    folder = tmp_path_factory.mktemp("trace")
    with (folder / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["ts", "in", "out", "route"], *requests])
    names = ("ts", "in", "out", "route")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in requests]
    written(folder, "t.jsonl", "\n".join(lines))
    how = "arrival=ts:us,prompt=in,output=out,class=route"

    for name in ("t.csv", "t.jsonl"):
        trace = reading(folder / name, mapping=how).requests
        # In order of arrival, equal ones as the file has them; an undated trace begins at nought.
        first = min(row[0] for row in requests)
        expected = sorted(requests, key=lambda row: row[0])
        begin = 0 if trace.dated else first / 1e6
        assert trace.arrival_s == pytest.approx([row[0] / 1e6 - begin for row in expected])
        assert trace.prompt_tokens.tolist() == [row[1] for row in expected]
        assert trace.output_tokens.tolist() == [row[2] for row in expected]
        assert [trace.kinds[kind] for kind in trace.kind] == [row[3] for row in expected]


@given(
    st.lists(st.lists(st.integers(0, 8), max_size=6, unique=True), max_size=40),
    st.integers(1, 10),
)
def test_a_prefix_cache_is_a_list_that_forgets_its_oldest(prompts, capacity):
    cache, held = PrefixCache(4, capacity * 4), []
    for blocks in prompts:
        expected = 0
        for block in blocks:
            if block not in held:
                break
            expected += 1
        for block in blocks:
            held = [one for one in held if one != block] + [block]
        held = held[max(0, len(held) - capacity) :]

        assert cache.serve(blocks, 4 * len(blocks)) == 4 * expected


def test_a_prompt_never_has_more_cached_than_it_is_long():
    cache = PrefixCache(512, None)
    cache.serve([1, 2], 600)

    assert cache.serve([1, 2], 600) == 600
