import pytest

from capplan.errors import InputError
from capplan.importers.published.serving import read_serving

HEADER = (
    "id,backend,model_path,system,mode,isl,osl,batch_size,tp_size,attention_dp_size,moe_tp_size,"
    "moe_ep_size,silicon_tpot_ms\n"
)
GOOD = "a,vllm,Qwen/Qwen3-32B,h200_sxm,agg,1024,128,8,4,,0,1,12.5\n"


def read(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    return read_serving(path)


def test_a_row_is_read_in_si_and_blanks_and_noughts_are_not_known(tmp_path):
    (row,) = read(tmp_path, HEADER + GOOD)
    assert (row.name, row.engine, row.gpu) == ("a", "vllm", "h200-sxm")
    assert (row.input_tokens, row.output_tokens, row.batch_size) == (1024, 128, 8)
    assert row.tpot_s == pytest.approx(0.0125)
    assert (row.tensor, row.pipeline, row.attention_copies) == (4, 1, None)
    assert (row.expert_slices, row.expert_groups) == (None, 1)
    assert row.place.endswith("rows.csv:2")


def test_rows_with_prefill_elsewhere_are_another_experiment(tmp_path):
    assert read(tmp_path, HEADER + GOOD.replace("agg", "disagg")) == ()


def test_all_bad_cells_are_named_by_line(tmp_path):
    bad = GOOD.replace("vllm", "tgi").replace(",8,4", ",eight,4").replace("12.5", "-1")
    with pytest.raises(InputError) as caught:
        read(tmp_path, HEADER + GOOD + bad)
    found = {(one.place.rpartition(":")[2], one.key) for one in caught.value.complaints}
    assert found == {("3", "backend"), ("3", "batch_size"), ("3", "silicon_tpot_ms")}


@pytest.mark.parametrize(
    "text", ["", "id,backend\na,vllm\n", HEADER + "a,vllm\n", HEADER + GOOD.strip() + ",1\n"]
)
def test_missing_columns_and_ragged_rows_are_refused(tmp_path, text):
    with pytest.raises(InputError):
        read(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_serving(tmp_path / "none.csv")
