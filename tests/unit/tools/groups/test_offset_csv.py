"""The two forms of the CSV, and lines that are wrong."""

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.groups.offset_csv import format_offsets, load_offsets, parse_offsets

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LONG = "a-topic-of-more-than-24-characters"


def test_both_forms_come_back() -> None:
    one = {"g": {T0: 3, T1: 4}}
    two = {"g": {T0: 3}, "h": {T1: 4}}
    assert format_offsets(one, grouped=False) == "t,0,3\nt,1,4\n"
    assert format_offsets(two, grouped=True) == "g,t,0,3\nh,t,1,4\n"
    assert parse_offsets(format_offsets(one, grouped=False), ["g"]) == one
    assert parse_offsets(format_offsets(two, grouped=True), ["g", "h"]) == two
    assert parse_offsets(format_offsets(one, grouped=True), ["g"]) == one


def test_names_are_quoted_where_jackson_does() -> None:
    offsets = {TopicPartition(LONG, 0): 1, TopicPartition("a-b_c.D9", 0): 2}
    text = format_offsets({"group with spaces": offsets}, grouped=True)
    assert text == f'"group with spaces","{LONG}",0,1\n"group with spaces",a-b_c.D9,0,2\n'
    assert parse_offsets(text, []) == {"group with spaces": offsets}


def test_blanks_in_the_name_of_a_group_are_kept_so_that_its_own_offsets_are_reset() -> None:
    offsets = {
        name: {T0: number} for number, name in enumerate([" g", "g ", "g", '"g"', "a,b ", "g\x85"])
    }
    assert parse_offsets(format_offsets(offsets, grouped=True), []) == offsets
    assert parse_offsets(' g ,\t"t" , 0,3 \n', []) == {"g": {T0: 3}}


def test_the_first_partition_of_a_file_is_reset_too_after_an_editor_wrote_a_mark(
    tmp_path: Path,
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_bytes("\ufeffgrün,t,0,3\r\ngrün,t,1,4\r\n".encode())
    assert load_offsets(str(file), ["grün"]) == {"grün": {T0: 3, T1: 4}}


def test_only_a_line_feed_ends_a_line() -> None:
    offsets = {f"g{letter}h": {T0: 3} for letter in "\x85\u2028\x0b\x1c"}
    assert parse_offsets(format_offsets(offsets, grouped=True), []) == offsets


def test_the_blank_line_of_an_export_is_no_line() -> None:
    assert parse_offsets("t,0,3\n\n", ["g"]) == {"g": {T0: 3}}
    assert parse_offsets("", ["g"]) == {}


@pytest.mark.parametrize(
    ("text", "groups", "said"),
    [
        ("t,0,3\nt,one,2\n", ["g"], "line 2: partition 'one' is not a number"),
        ("t,0,3\nt,1,-2\n", ["g"], "line 2: Invalid negative offset -2"),
        ("t,0,3\n\nt,1,2\n", ["g"], "line 2: expected topic,partition,offset, found ''"),
        ("t,0\n", ["g"], "line 1: expected group,topic,partition,offset, found 't,0'"),
        ("t,0,3\n", ["g", "h"], "line 1: expected group,topic,partition,offset, found 't,0,3'"),
        ("t,0,3\ng,t,0,3\n", ["g"], "line 2: expected topic,partition,offset, found 'g,t,0,3'"),
        (
            "t,0,3\n" + "x" * 200_000,
            ["g"],
            f"line 2: expected topic,partition,offset, found '{'x' * 100}'",
        ),
        ('t,0,3\n "t,1,2\n', ["g"], "line 2: the quotes of cell 1 are wrong"),
        ('g,"t"x,0,3\n', [], "line 1: the quotes of cell 2 are wrong"),
        (f"t,{2**31},3\n", ["g"], "line 1: partition '2147483648' is not a number"),
        (f"t,1,{2**63}\n", ["g"], "line 1: offset '9223372036854775808' is not a number"),
        (f"t,{'1' * 5000},3\n", ["g"], f"line 1: partition '{'1' * 5000}' is not a number"),
        (f"t,1,{'1' * 5000}\n", ["g"], f"line 1: offset '{'1' * 5000}' is not a number"),
        (",0,3\n", ["g"], "line 1: expected topic,partition,offset, found ',0,3'"),
    ],
)
def test_bad_lines_are_named(text: str, groups: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_offsets(text, groups)
    assert str(caught.value) == said


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Unable to read file .*none: No such file"):
        load_offsets(str(tmp_path / "none"), ["g"])
    (tmp_path / "bytes").write_bytes(b"\xff\xfe,0,1\n")
    with pytest.raises(ConfigError, match="it is not UTF-8"):
        load_offsets(str(tmp_path / "bytes"), ["g"])
    (tmp_path / "bad.csv").write_text("t\n")
    with pytest.raises(ConfigError, match=r"bad\.csv: line 1: expected"):
        load_offsets(str(tmp_path / "bad.csv"), ["g"])
