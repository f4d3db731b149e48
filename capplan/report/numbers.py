"""How each quantity is shown, with its unit: here seconds become milliseconds, watts kilowatts."""

ABSENT = "-"


def time(value_s: float) -> str:
    """Three figures in ms below a second, in s above.

    >>> time(0.0423), time(1.234), time(0.0004), time(3), time(120)
    ('42.3 ms', '1.23 s', '0.40 ms', '3.00 s', '120 s')
    """
    if value_s >= 0.9995:
        return f"{_three(value_s)} s"
    value_ms = value_s * 1e3
    digits = 0 if value_ms >= 99.95 else 1 if value_ms >= 9.995 else 2
    return f"{value_ms:.{digits}f} ms"


def signed_time(value_s: float) -> str:
    """A difference of times.

    >>> signed_time(0.0123), signed_time(-0.0123)
    ('+12.3 ms', '-12.3 ms')
    """
    return f"{'-' if value_s < 0 else '+'}{time(abs(value_s))}"


def kilowatts(value_w: float) -> str:
    """One decimal below 100 kW, none above.

    >>> kilowatts(10_230), kilowatts(123_456)
    ('10.2 kW', '123 kW')
    """
    value_kw = value_w / 1e3
    return f"{value_kw:,.1f} kW" if value_kw < 99.95 else f"{value_kw:,.0f} kW"


def watt_hours(value_j: float) -> str:
    """Energy in kWh, in MWh from ten thousand.

    >>> watt_hours(3.6e6 * 1500), watt_hours(3.6e6 * 25_000)
    ('1,500 kWh', '25.0 MWh')
    """
    value_kwh = value_j / 3.6e6
    return f"{value_kwh:,.0f} kWh" if value_kwh < 9_999.5 else f"{value_kwh / 1e3:,.1f} MWh"


def joules_per_token(value_j: float) -> str:
    """Three figures.

    >>> joules_per_token(2.346), joules_per_token(15)
    ('2.35 J', '15.0 J')
    """
    return f"{_three(value_j)} J"


def dollars(value_usd: float) -> str:
    """Cents below a thousand dollars, whole dollars above.

    >>> dollars(1.924), dollars(48_000)
    ('$1.92', '$48,000')
    """
    return f"${value_usd:,.2f}" if value_usd < 999.995 else f"${value_usd:,.0f}"


def count(value: float) -> str:
    """A whole number with thousands separators.

    >>> count(12345.4)
    '12,345'
    """
    return f"{value:,.0f}"


def size(value_bytes: float) -> str:
    """Three figures in decimal units, bytes below a thousand.

    >>> size(70_272), size(84.2e9), size(671.5e9), size(999_950), size(12)
    ('70.3 KB', '84.2 GB', '672 GB', '1.00 MB', '12 B')
    """
    return f"{value_bytes:.0f} B" if value_bytes < 999.5 else _scaled(value_bytes, "KMGTPE") + "B"


def parameters(value: float) -> str:
    """Three figures and the letter that makers use.

    >>> parameters(46.7e9), parameters(1.026e12), parameters(0)
    ('46.7 B', '1.03 T', '0')
    """
    return f"{value:.0f}" if value < 999.5 else _scaled(value, "KMBTPE")


def ratio(value: float) -> str:
    """Two decimals.

    >>> ratio(0.8449)
    '0.84'
    """
    return f"{value:.2f}"


def rate(value_per_s: float) -> str:
    """Three figures a second.

    >>> rate(3.2), rate(582.99), rate(45_000)
    ('3.20/s', '583/s', '45,000/s')
    """
    return f"{_three(value_per_s)}/s"


def _three(value: float) -> str:
    """Three figures, trailing noughts kept; thousands separated.

    >>> _three(15), _three(1234.5)
    ('15.0', '1,234')
    """
    return f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{value:,.0f}"


def _scaled(value: float, letters: str) -> str:
    """Three figures before a letter for each thousand."""
    power = 0
    while value >= 999.5 and power < len(letters):
        value /= 1000
        power += 1
    return f"{_three(value)} {letters[power - 1]}"
