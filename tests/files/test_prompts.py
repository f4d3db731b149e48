import json
from pathlib import Path

import pytest

from capplan.errors import InputError
from capplan.files import catalogue
from capplan.files.prompts import read_prompts

SHIPPED = Path(__file__).parents[2] / "prompts"


def test_sixty_prompts_are_shipped_in_three_workloads_and_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert catalogue.names("prompts") == ["chat", "code", "extraction"]
    prompts = [
        p for name in catalogue.names("prompts") for p in read_prompts(SHIPPED / f"{name}.jsonl")
    ]
    assert len(prompts) == len({p.id for p in prompts}) == len({p.prompt for p in prompts}) == 60
    assert catalogue.find("prompts", "code") == SHIPPED / "code.jsonl"


def test_extraction_has_sources_to_copy_from() -> None:
    lengths = [len(p.prompt.split()) for p in read_prompts(SHIPPED / "extraction.jsonl")]
    assert min(lengths) > 80


def test_both_forms_of_a_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    lines = [json.dumps({"prompt": "A\nB"}), "", json.dumps({"messages": turns})]
    file.write_text("\n".join(lines))
    first, second = read_prompts(file)
    assert [(m.role, m.content) for m in first.conversation] == [("user", "A\nB")]
    assert [m.role for m in second.conversation] == ["system", "user"]


def test_plain_text_has_a_prompt_a_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text('One {"prompt": 1}\n\n  Two\n')
    assert [p.prompt for p in read_prompts(file)] == ['One {"prompt": 1}', "Two"]


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    lines = [
        "{",
        '{"prompt": "a", "text": "b"}',
        '{"messages": [{"role": "assistant", "content": "I"}]}',
        '{"id": "x"}',
        '{"prompt": "good"}',
        json.dumps({"prompt": "words \ufffd\ufffd\ufffd and bytes"}),
    ]
    file.write_text("\n".join(lines))
    with pytest.raises(InputError) as error:
        read_prompts(file)
    said = str(error.value)
    assert [f":{number}" in said for number in range(1, 7)] == [True] * 4 + [False, True]
    assert "undecodable" in said
    assert "the user's" in said


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.txt"
    file.write_text(text)
    with pytest.raises(InputError, match="holds no prompt"):
        read_prompts(file)
