from collections.abc import Callable
from pathlib import Path

import pytest
from example_forecast import FORECAST, SERIES, Change, Collect

from capplan.errors import InputError


@pytest.fixture
def forecast(tmp_path: Path) -> Path:
    """A good forecast with its series."""
    (tmp_path / "rps.csv").write_text(SERIES)
    path = tmp_path / "forecast.yaml"
    path.write_text(FORECAST)
    return path


@pytest.fixture
def changed(forecast: Path) -> Change:
    """The forecast with a piece of its text replaced."""

    def change(old: str, new: str) -> Path:
        text = forecast.read_text()
        assert text.count(old) == 1, f"{old!r} must stand once in the example"
        forecast.write_text(text.replace(old, new))
        return forecast

    return change


@pytest.fixture
def complaints(tmp_path: Path) -> Collect:
    """What a call complains of, as the user sees it, the folder left out."""

    def collect(call: Callable[..., object], *arguments: object) -> list[str]:
        with pytest.raises(InputError) as caught:
            call(*arguments)
        return [str(found).replace(f"{tmp_path}/", "") for found in caught.value.complaints]

    return collect
