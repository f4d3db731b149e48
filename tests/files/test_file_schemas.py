import json

import pytest

from capplan.files.schema import json_schema
from capplan.records.base import Record
from capplan.records.fleet import Fleet
from capplan.records.forecast import Forecast
from capplan.records.profile import Profile


@pytest.mark.parametrize("kind", [Fleet, Forecast, Profile])
def test_a_schema_names_its_dialect_and_title(kind: type[Record]) -> None:
    schema = json.loads(json_schema(kind))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == f"capplan {kind.__name__.lower()}"
    assert schema["additionalProperties"] is False


def test_a_duration_may_stand_with_its_unit() -> None:
    axis = json.loads(json_schema(Forecast))["$defs"]["TimeAxis"]
    assert axis["properties"]["step"]["type"] == "string"
    assert axis["required"] == ["start"]
    assert axis["allOf"] == [{"oneOf": [{"required": ["step_s"]}, {"required": ["step"]}]}]
    objectives = json.loads(json_schema(Forecast))["$defs"]["TrafficClass"]["properties"][
        "objectives"
    ]
    assert {"ttft_p99", "ttft_p99_s"} <= set(objectives["propertyNames"]["enum"])


def test_a_rate_is_no_duration() -> None:
    rate = json.loads(json_schema(Forecast))["$defs"]["Rate"]
    assert set(rate["properties"]) == {"series", "values_per_s", "daily"}


def test_a_table_may_be_compact() -> None:
    table = json.loads(json_schema(Profile))["$defs"]["StepTable"]["properties"]
    assert table["columns"]["items"] == {"type": "string"}
    assert {"type": "array"} in table["rows"]["items"]["anyOf"]
