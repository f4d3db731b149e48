import json
import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.files import composer
from capplan.files.document import read_document
from capplan.files.scalars import resolve

PRINTABLE = st.text(
    st.characters(min_codepoint=32, max_codepoint=0xD7FF, exclude_categories=["Cc"]), max_size=20
)


def document(folder: Path, text: str | bytes) -> Path:
    path = folder / "a.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def complaints(path: Path) -> list[str]:
    """Each complaint as the user sees it, the folder left out."""
    with pytest.raises(InputError) as caught:
        read_document(path)
    return [str(found).replace(f"{path.parent}/", "") for found in caught.value.complaints]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-2", 0.01),
        ("1E3", 1000.0),
        ("+.5", 0.5),
        ("3.", 3.0),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("-7", -7),
        ("no", "no"),
        ("off", "off"),
        ("Yes", "Yes"),
        ("y", "y"),
        ("tRUE", "tRUE"),
        ("TRUE", True),
        ("false", False),
        ("~", None),
        ("Null", None),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("2025-03-01", "2025-03-01"),
        ("<<", "<<"),
        ("=", "="),
        ("1.2.3", "1.2.3"),
        ("٣", "٣"),
        ("-.INF", -math.inf),
        ("9" * 5000, math.inf),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_quoted_words_are_text(tmp_path: Path) -> None:
    text = "a: '1'\nb: \"true\"\nc: |\n  3\n"
    assert read_document(document(tmp_path, text)).tree == {"a": "1", "b": "true", "c": "3\n"}


def test_lines_and_tabs_are_text(tmp_path: Path) -> None:
    text = 'a: "one\\n\\ttwo"\nb: |\n  one\n  \ttwo\nc: one\n\n  two\n'
    tree = {"a": "one\n\ttwo", "b": "one\n\ttwo\n", "c": "one\ntwo"}
    assert read_document(document(tmp_path, text)).tree == tree


def test_an_absent_value_is_null(tmp_path: Path) -> None:
    assert read_document(document(tmp_path, "a:\nb: [~, '']\n")).tree == {
        "a": None,
        "b": [None, ""],
    }


@given(
    tree=st.dictionaries(
        PRINTABLE,
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | PRINTABLE,
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text("ab c", max_size=5), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        min_size=1,
        max_size=4,
    ),
    indent=st.sampled_from([None, 1, "\t"]),
)
def test_json_reads_as_python_reads_it(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, object], indent: str | int | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "a.json"
    text = json.dumps(tree, indent=indent).replace("Infinity", "1e999")
    path.write_text(text)
    assert read_document(path).tree == json.loads(text)


def test_json_indented_with_tabs_is_read_without_the_parser_in_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composer, "_LOADER", yaml.SafeLoader)
    tree = {"a": [1, {"b": "x\ty"}]}
    read = read_document(document(tmp_path, json.dumps(tree, indent="\t")))
    assert read.tree == tree
    assert read.places["a", 1, "b"] == (5, 4)


def test_places_are_where_keys_and_items_begin(tmp_path: Path) -> None:
    path = document(tmp_path, "# head\na:\n  - b: 1\n    cé: {d: 2, e: [3, 4]}\n")
    places = read_document(path).places
    assert places == {
        (): (2, 1),
        ("a",): (2, 1),
        ("a", 0): (3, 5),
        ("a", 0, "b"): (3, 5),
        ("a", 0, "cé"): (4, 5),
        ("a", 0, "cé", "d"): (4, 10),
        ("a", 0, "cé", "e"): (4, 16),
        ("a", 0, "cé", "e", 0): (4, 20),
        ("a", 0, "cé", "e", 1): (4, 23),
    }


def test_a_key_that_is_not_there_has_the_place_of_what_should_hold_it(tmp_path: Path) -> None:
    path = document(tmp_path, "x: 1\na:\n  b: 1\n")
    read = read_document(path)
    assert read.place(("a", "b", "c", 3)) == f"{path}:3:3"
    assert read.place(("nowhere",)) == f"{path}:1:1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["a.yaml: is empty"]),
        ("# only a comment\n", ["a.yaml: is empty"]),
        ("---\n", ["a.yaml:2:1: is empty"]),
        (
            "a: 1\nb: 2\na: 3\n",
            ["a.yaml:3:1: a: key stands twice, first in line 1\n    remove one of the two"],
        ),
        (
            "p:\n  true: 1\n  4090: 2\n  ~: 3\n  [x]: 4\n",
            [
                'a.yaml:2:3: p: keys must be text, found true\n    write "true"',
                'a.yaml:3:3: p: keys must be text, found 4090\n    write "4090"',
                "a.yaml:4:3: p: keys must be text, found null",
                "a.yaml:5:3: p: keys must be text",
            ],
        ),
        (
            "a: &x 1\nb: *x\nc: !!str 5\n",
            [
                "a.yaml:1:4: a: anchors are not supported\n    leave out &x",
                "a.yaml:2:4: b: aliases are not supported\n    write out what *x means",
                "a.yaml:3:4: c: tags are not supported\n    leave out tag:yaml.org,2002:str",
            ],
        ),
        (
            "a: 1\n---\nb: 2\n",
            ["a.yaml:2:1: one file holds one document\n    write the second to its own file"],
        ),
        (
            "a:\n\tb: 1\n",
            [
                (
                    "a.yaml:2:1: is not YAML: while scanning for the next token found character "
                    "that cannot start any token\n    indent with spaces, not tabs"
                )
            ],
        ),
        (
            "a: b: c\n",
            ["a.yaml:1:5: is not YAML: mapping values are not allowed in this context"],
        ),
        ("a: 1\nb: x\0y\n", ["a.yaml:2:5: control characters are not allowed, found U+0000"]),
        ("a: 1\nb: \x1b[31m\n", ["a.yaml:2:4: control characters are not allowed, found U+001B"]),
        ("a: 1\nb: x\x85y\n", ["a.yaml:2:5: control characters are not allowed, found U+0085"]),
        (
            'a: "\\e[31m\\e]0;pwn\\a"\nb:\n  - "\\u0007"\n  - "x\\x9b1m"\n  - "\\r"\n',
            [
                "a.yaml:1:4: a: control characters are not allowed, found U+001B",
                "a.yaml:3:5: b.0: control characters are not allowed, found U+0007",
                "a.yaml:4:5: b.1: control characters are not allowed, found U+009B",
                "a.yaml:5:5: b.2: control characters are not allowed, found U+000D",
            ],
        ),
        (
            'p: {"a\\nb": 1, "\\e": {c: "\\a"}}\n',
            [
                "a.yaml:1:5: p: control characters are not allowed, found U+000A",
                "a.yaml:1:16: p: control characters are not allowed, found U+001B",
                "a.yaml:1:26: p.c: control characters are not allowed, found U+0007",
            ],
        ),
        (
            b"a: 1\nb: \xc3\xa9\xff\n",
            ["a.yaml:2:5: is not UTF-8 text, found byte 0xff\n    save the file as UTF-8"],
        ),
    ],
)
def test_what_is_wrong_is_said_with_line_and_column(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    assert complaints(document(tmp_path, text)) == expected


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_a_complaint(tmp_path: Path, opening: str) -> None:
    *_, last = complaints(document(tmp_path, opening * 50_000))
    # libyaml looks ahead and has its own limit, of 1000 brackets.
    assert "nested more than 64 levels deep" in last or "maximum nesting depth" in last


def test_64_levels_are_read(tmp_path: Path) -> None:
    assert read_document(document(tmp_path, "[" * 64 + "]" * 64)).tree
    assert complaints(document(tmp_path, "[" * 65 + "]" * 65))[0].startswith("a.yaml:1:65: ")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert read_document(document(tmp_path, "\ufeffa: 1\n")).tree == {"a": 1}


def test_a_huge_file_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with path.open("wb") as file:
        file.truncate(200 << 20)
    assert complaints(path) == ["a.yaml: must not be larger than 16 MiB, found 200.0 MiB"]


def test_an_endless_device_is_refused() -> None:
    with pytest.raises(InputError, match=r"must not be larger than 16 MiB, found more"):
        read_document(Path("/dev/zero"))


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert complaints(tmp_path / "b.yaml") == ["b.yaml: no such file"]
    with pytest.raises(InputError, match="is a folder, not a file"):
        read_document(tmp_path)
    assert complaints(tmp_path / "b\0.yaml") == ["b\\0.yaml: is not a file name"]
    with pytest.raises(InputError, match="File name too long"):
        read_document(tmp_path / ("x" * 300))


def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = document(tmp_path, "a: 1\n")
    path.chmod(0)
    try:
        path.open("rb").close()
    except PermissionError:
        assert complaints(path) == ["a.yaml: cannot be read: Permission denied"]
    else:
        pytest.skip("this user may read everything")


def test_a_file_of_too_many_values_is_refused_before_it_is_read_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capplan.files.composer.MOST_NODES", 10)
    path = document(tmp_path, "a: [1, 2, 3]\nb: [4, 5, 6, 7, 8, 9, 10, 11]\n")
    assert complaints(path) == [
        (
            "a.yaml:2:20: holds more than 10 keys and items\n"
            "    put long series in a CSV file beside it"
        )
    ]
