from pathlib import Path

import pytest
from example_forecast import Change, Collect

from capplan.files.reader import read_forecast


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["rps.csv: is empty"]),
        ("\n\n", ["rps.csv: is empty"]),
        ("time,mean_rps\n", ["rps.csv: has a header but no rows"]),
        (
            "time,mean_rqs\n0,1\n",
            ["rps.csv:1: mean_rps: no such column\n    did you mean mean_rqs?"],
        ),
        ("a,b\n0,1\n", ["rps.csv:1: mean_rps: no such column\n    its columns: a, b"]),
        ("mean_rps,mean_rps\n0,1\n", ["rps.csv:1: mean_rps: column stands more than once"]),
        (
            "time,mean_rps\n0,1\n1,-3\n2,nan\n3,\n4,inf\n5,1_0\n6,1e999\n7,x\n",
            [
                "rps.csv:3:2: mean_rps: must be a number of at least 0, found -3",
                "rps.csv:4:2: mean_rps: must be a number of at least 0, found nan",
                'rps.csv:5:2: mean_rps: must be a number of at least 0, found ""',
                "rps.csv:6:2: mean_rps: must be a number of at least 0, found inf",
                "rps.csv:7:2: mean_rps: must be a number of at least 0, found 1_0",
                "rps.csv:8:2: mean_rps: must be at most 1e+12, found 1e999",
                "rps.csv:9:2: mean_rps: must be a number of at least 0, found x",
            ],
        ),
        (
            "time,mean_rps\n0,1\n\n2,3,4\n5,6\n",
            [
                "rps.csv:3: must have 2 cells, as the header, found 0",
                "rps.csv:4: must have 2 cells, as the header, found 3",
            ],
        ),
        ('time,mean_rps\n0,"1\n', ["rps.csv:2: is not CSV: unexpected end of data"]),
    ],
)
def test_what_is_wrong_with_a_series_is_said_by_line_and_column(
    forecast: Path, complaints: Collect, text: str, expected: list[str]
) -> None:
    (forecast.parent / "rps.csv").write_text(text)
    assert complaints(read_forecast, forecast) == expected


def test_twenty_bad_rows_are_shown_and_the_rest_counted(
    forecast: Path, complaints: Collect
) -> None:
    (forecast.parent / "rps.csv").write_text("time,mean_rps\n" + "0,-1\n" * 500)
    found = complaints(read_forecast, forecast)
    assert len(found) == 21
    assert found[-1] == "rps.csv: 480 more rows are wrong"


def test_a_missing_or_unfit_file_is_named(forecast: Path, complaints: Collect) -> None:
    path = forecast.parent / "rps.csv"
    path.write_bytes(b"time,mean_rps\n0,\xff\n")
    assert complaints(read_forecast, forecast)[0].startswith("rps.csv:2:3: is not UTF-8 text")
    with path.open("wb") as file:
        file.truncate(200 << 20)
    assert complaints(read_forecast, forecast) == [
        "rps.csv: must not be larger than 64 MiB, found 200.0 MiB"
    ]
    path.unlink()
    assert complaints(read_forecast, forecast) == ["rps.csv: no such file"]
    path.mkdir()
    assert complaints(read_forecast, forecast) == ["rps.csv: is a folder, not a file"]


def test_control_characters_are_refused_in_a_series_and_in_its_name(
    changed: Change, complaints: Collect
) -> None:
    path = changed("file: rps.csv", 'file: "rps\\0.csv"')
    rule = "control characters are not allowed"
    assert complaints(read_forecast, path) == [
        f"forecast.yaml:6:18: rate.series.file: {rule}, found U+0000"
    ]
    path.write_text(path.read_text().replace("\\0", ""))
    (path.parent / "rps.csv").write_text("time,\x1b[31m\n0,1\n")
    assert complaints(read_forecast, path) == [f"rps.csv:1:6: {rule}, found U+001B"]


def test_spreadsheet_exports_are_read(forecast: Path) -> None:
    text = '\ufefftime,"mean_rps"\r\n"a\nb", 1.5 \r\n1,+.5\r\n,\r\n'
    (forecast.parent / "rps.csv").write_bytes(text.encode())
    assert read_forecast(forecast).rate.values_per_s == (1.5, 0.5)


def test_series_of_different_lengths_name_both(
    forecast: Path, changed: Change, complaints: Collect
) -> None:
    (forecast.parent / "other.csv").write_text("rps\n1\n2\n")
    path = changed("    share: 0.25\n", "    rate: {series: {file: other.csv, column: rps}}\n")
    text = path.read_text().replace("share: 0.75", "share: 1")
    path.write_text(text)
    assert complaints(read_forecast, path) == [
        "forecast.yaml:14:5: classes.1.rate: must have as many values as rate, which has 3, found 2"
    ]


def test_a_class_may_bring_its_own_series(changed: Change) -> None:
    path = changed("    share: 0.25\n", "    rate: {series: {file: rps.csv, column: time}}\n")
    path.write_text(path.read_text().replace("share: 0.75", "share: 1"))
    assert read_forecast(path).classes[1].rate.values_per_s == (0.0, 1.0, 2.0)


def test_a_daily_rate_is_left_as_it_is(changed: Change) -> None:
    path = changed(
        "series: {file: rps.csv, column: mean_rps}",
        "daily: {peak_per_s: 3, trough: 0.2, peak_hour: 14, days: 7}",
    )
    assert read_forecast(path).rate.daily.days == 7
