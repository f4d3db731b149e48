"""New traffic into a forecast that people have worked on."""

from capplan.errors import Complaint, InputError
from capplan.forecaster.make import MARK
from capplan.records.forecast import Forecast, TrafficClass

TRAFFIC = ("time", "rate", "peak_minute_over_mean", "burstiness", "band", "source", "caveats")
"""Keys of a forecast that a history renews."""
CLASS_TRAFFIC = (
    "share",
    "rate",
    "input_tokens",
    "output_tokens",
    "length_correlation",
    "prefix_reuse",
)
"""Keys of a class that a history renews."""


def renewed(old: Forecast, new: Forecast) -> Forecast:
    """The old forecast with the traffic of the new one.

    What a history does not tell stays as it was, a class's prefix reuse for one.

    Raises:
        InputError: The two do not have the same classes.
    """
    own = {traffic.name: traffic for traffic in new.classes}
    missing = [traffic.name for traffic in old.classes if traffic.name not in own]
    if missing or len(own) != len(old.classes):
        rule = "must be those of the history, each with its name"
        found = ", ".join(traffic.name for traffic in old.classes)
        remedy = f"the history has {', '.join(own)}: name them so, or see --classes"
        raise InputError([Complaint(f"forecast {old.name}", "classes", rule, found, remedy)])
    people = tuple(line for line in old.caveats if not line.startswith(MARK))
    fields = {key: getattr(old, key) for key in old.model_fields_set if key not in TRAFFIC}
    fields |= {key: getattr(new, key) for key in new.model_fields_set if key in TRAFFIC}
    if "peak_minute_over_mean" not in new.model_fields_set & old.model_fields_set:
        fields.setdefault("peak_minute_over_mean", old.peak_minute_over_mean)
    fields["caveats"] = (*people, *new.caveats)
    fields["classes"] = tuple(_class(traffic, own[traffic.name]) for traffic in old.classes)
    return Forecast(**fields)


def _class(old: TrafficClass, new: TrafficClass) -> TrafficClass:
    untold = {key for key in ("prefix_reuse",) if key not in new.model_fields_set}
    renewing = set(CLASS_TRAFFIC) - untold
    fields = {key: getattr(old, key) for key in old.model_fields_set if key not in renewing}
    fields |= {key: getattr(new, key) for key in new.model_fields_set if key in renewing}
    return TrafficClass(**fields)
