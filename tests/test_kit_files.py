"""The tools for the files of one folder: what they answer, page by page and piece by piece, and what they refuse."""

import errno
import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from nb_agent import Agent, ToolError
from nb_agent.errors import SettingError
from nb_agent.kit import files
from nb_agent.kit.files import MOST_BYTES, MOST_FILE, PAGE, file_tools

SECRET = "nobody may read this"


@pytest.fixture
def box(tmp_path):
    """A folder beside others that are none of its business."""
    root = tmp_path / "box"
    root.mkdir()
    (root / "notes.txt").write_text("a note\n", encoding="utf-8")
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "inner.txt").symlink_to(root / "notes.txt")
    return root


@pytest.fixture
def tools(box):
    return {tool.name: tool for tool in file_tools(box)}


def everything(folder):
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def failed(call, *args, **named):
    with pytest.raises(ToolError) as error:
        call(*args, **named)
    return error.value.code


# ------------------------------------------------------------------------------------------------- the folder


def test_each_tool_says_what_it_may_do(tools):
    assert {name: tool.tier for name, tool in tools.items()} == {
        "read_file": "read",
        "search_files": "read",
        "write_file": "write",
        "append_file": "write",
        "patch_file": "write",
        "file_hash": "read",
    }
    assert all(
        entry["description"]
        for tool in tools.values()
        for entry in [tool.schema, *tool.schema["parameters"]["properties"].values()]
    )


def test_no_tool_leaves_the_folder(box, tools, cases):
    case, before = cases["H01"]["expect"], everything(box.parent)
    outside = str(box.parent / "secret.txt")
    for path in [*case["reject"][1:3], "..", "notes.txt\x00.png", "~/x", "link.txt", outside]:
        calls = [
            lambda: tools["read_file"](path),  # noqa: B023  called at once
            lambda: tools["search_files"](path),  # noqa: B023
            lambda: tools["write_file"](path, "new"),  # noqa: B023
            lambda: tools["append_file"](path, "new", 0),  # noqa: B023
            lambda: tools["patch_file"](path, "nobody", "all"),  # noqa: B023
            lambda: tools["file_hash"](path),  # noqa: B023
        ]
        assert [failed(call) for call in calls] == ["path_not_allowed"] * 6
    assert everything(box.parent) == before


def test_a_path_that_stays_inside_is_accepted_however_it_is_written(box, tools, cases):
    for name in cases["H01"]["expect"]["accept"]:
        given = str(box / "notes.txt") if name.startswith("R/") else name
        assert tools["write_file"](given, "mine")["success"]
        assert tools["read_file"](given)["content"] == "mine"
    assert (box / "sub" / "new.txt").read_text(encoding="utf-8") == "mine"


def test_the_folder_itself_can_be_listed_but_not_read_or_written(tools):
    for name in ("", ".", "./"):
        assert tools["search_files"](name)["files"] == ["notes.txt"]
        assert failed(tools["read_file"], name) == failed(tools["write_file"], name, "x") == "is_a_folder"
        assert failed(tools["append_file"], name, "x", 0) == failed(tools["file_hash"], name) == "is_a_folder"


def test_a_link_inside_the_folder_leads_to_its_file(box, tools):
    assert tools["read_file"]("inner.txt") == {"success": True, "path": "notes.txt", "content": "a note\n"}
    tools["write_file"]("inner.txt", "changed")
    assert (box / "inner.txt").is_symlink()
    assert (box / "notes.txt").read_text(encoding="utf-8") == "changed"


def test_a_refused_path_is_a_result_that_the_model_reads(box):
    run = Agent(tools=file_tools(box)).run("Read the file ../secret.txt", view=False)
    (result,) = run.tool_results
    assert result.code == "path_not_allowed"
    assert SECRET not in run.text


def test_a_folder_that_is_not_there_is_said_when_the_tools_are_made(tmp_path):
    with pytest.raises(SettingError, match="is no folder; make it first, or name another one"):
        file_tools(tmp_path / "missing")


# ------------------------------------------------------------------------------------------------- read


@pytest.mark.parametrize("text", ["line of text\n" * 5_000, "一" * 30_000, "no end" * 6_000 + "\r\n\r\n🙂"])
def test_the_pages_of_a_long_file_are_the_whole_of_it(box, tools, text):
    (box / "long.txt").write_bytes(text.encode())
    read, pages, offset = "", 0, 0
    while offset is not None:
        page = tools["read_file"]("long.txt", offset)
        assert len(page["content"]) <= PAGE
        assert (page["characters"], page["sha256"]) == (len(text), sha256(text.encode()))
        assert (f"go on with offset={page['next']}" in page["note"]) is (page["next"] is not None)
        read, pages, offset = read + page["content"], pages + 1, page["next"]
    assert read == text
    assert pages < 10


def test_a_page_ends_after_a_whole_line(box, tools):
    (box / "long.txt").write_text("0123456789\n" * 100, encoding="utf-8")
    page = tools["read_file"]("long.txt", offset=11, limit=40)
    assert page["content"] == "0123456789\n" * 3
    assert page["next"] == 44
    assert page["note"] == "characters 11 to 44 of 1100; go on with offset=44"
    last = tools["read_file"]("long.txt", offset=1089)
    assert (last["content"], last["next"], last["note"]) == (
        "0123456789\n",
        None,
        "characters 1089 to 1100 of 1100; this is its end",
    )


def test_an_offset_past_the_end_is_said_and_an_empty_file_is_whole(box, tools):
    (box / "empty.txt").touch()
    assert tools["read_file"]("empty.txt")["content"] == ""
    with pytest.raises(ToolError, match=r"^'notes.txt' has 7 characters; offset=8 is past its end$"):
        tools["read_file"]("notes.txt", 8)
    assert tools["read_file"]("notes.txt", 7)["content"] == ""


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("missing.txt", "not_found"),
        ("notes.txt/x", "not_found"),
        ("picture.png", "not_text"),
        ("large.txt", "too_large"),
        ("pipe", "path_not_allowed"),
    ],
)
def test_what_cannot_be_read_is_said(box, tools, path, code):
    (box / "picture.png").write_bytes(b"\x89PNG\xff")
    with (box / "large.txt").open("wb") as file:
        file.truncate(MOST_FILE + 1)
    os.mkfifo(box / "pipe")
    assert failed(tools["read_file"], path) == failed(tools["patch_file"], path, "a", "b") == code


# ------------------------------------------------------------------------------------------------- search


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", ["README.md", "docs/a.md", "docs/deep/b.md"]),
        ("**/*.md", ["README.md", "docs/a.md", "docs/deep/b.md"]),
        ("docs/*.md", ["docs/a.md"]),
        ("docs/**/*.md", ["docs/a.md", "docs/deep/b.md"]),
        ("docs/**", ["docs/a.md", "docs/deep/b.md", "docs/deep/c.txt"]),
        ("docs", ["docs/a.md", "docs/deep/b.md", "docs/deep/c.txt"]),
        ("./docs/deep/", ["docs/deep/b.md", "docs/deep/c.txt"]),
        ("notes.tx?", ["notes.txt"]),
        ("*.MD", []),
        ("deep", []),
    ],
)
def test_a_pattern_finds_ordinary_files_at_the_depth_that_it_names(box, tools, pattern, found):
    for name in ("README.md", "docs/a.md", "docs/deep/b.md", "docs/deep/c.txt", ".hidden.md", ".git/d.md"):
        (box / name).parent.mkdir(parents=True, exist_ok=True)
        (box / name).write_text("x", encoding="utf-8")
    assert tools["search_files"](pattern) == {"success": True, "pattern": pattern, "files": found, "count": len(found)}


def test_a_search_says_how_many_there_are_beyond_those_it_lists(box, tools):
    for number in range(250):
        (box / f"{number:03}.csv").write_text("a row\n", encoding="utf-8")
    found = tools["search_files"]("*.csv")
    assert (len(found["files"]), found["count"], found["files"][0]) == (200, 250, "000.csv")
    found = tools["search_files"]("*.csv", "row")
    assert (len(found["lines"]), found["count"]) == (200, 250)


def test_a_text_is_found_in_its_lines_whatever_its_case(box, tools):
    (box / "a.md").write_text("first\r\n  The PORT is 80\r\n" + "x" * 500 + " port", encoding="utf-8")
    (box / "b.bin").write_bytes(b"port\xff")
    (box / "c.md").write_text("nothing", encoding="utf-8")
    found = tools["search_files"]("*", "Port")
    assert found["lines"] == [{"path": "a.md", "line": 2, "text": "The PORT is 80"}, {"path": "a.md", "line": 3, "text": "x" * 200}]
    assert (found["files"], found["count"]) == (["a.md"], 2)
    assert tools["search_files"]("*", SECRET)["files"] == []
    assert failed(tools["search_files"], "*", " ") == failed(tools["search_files"], "*", "two\nlines") == "bad_text"


def test_a_search_ends_where_there_is_too_much_to_look_at(box, tools, monkeypatch):
    monkeypatch.setattr(files, "MOST_SEARCHED", 5)
    assert failed(tools["search_files"], "*", "note") == "too_large"
    monkeypatch.setattr("nb_agent.guards.workspace.MOST_SEEN", 2)
    assert failed(tools["search_files"], "*") == "too_large"


# ------------------------------------------------------------------------------------------------- write


def test_a_written_file_holds_exactly_the_text_and_comes_back_equal(box, tools):
    text = "一行\r\n🙂\n\n"
    answer = {"success": True, "path": "docs/部署说明.md", "bytes": 14, "created": True}
    assert tools["write_file"]("docs/部署说明.md", text) == answer
    assert (box / "docs" / "部署说明.md").read_bytes() == text.encode()
    assert tools["read_file"]("docs/部署说明.md")["content"] == text
    assert tools["write_file"]("docs/部署说明.md", "new")["created"] is False
    assert tools["file_hash"]("docs/部署说明.md") == {
        "success": True,
        "path": "docs/部署说明.md",
        "bytes": 3,
        "sha256": sha256(b"new"),
    }


def test_writing_is_whole_or_not_at_all(box, tools, monkeypatch):
    (box / "notes.txt").chmod(0o640)
    before = everything(box)
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        for call in (lambda: tools["write_file"]("notes.txt", "half"), lambda: tools["patch_file"]("notes.txt", "note", "half")):
            with pytest.raises(ToolError, match=r"^'notes.txt' cannot be written: No space left on device$"):
                call()
    assert everything(box) == before
    tools["write_file"]("notes.txt", "whole")
    assert (box / "notes.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        ("large.txt", "é" * MOST_BYTES, "too_large"),
        ("half.txt", "\ud83d", "not_text"),
        ("notes.txt/x", "x", "not_writable"),
        (f"{'n' * 300}.txt", "x", "path_not_allowed"),
    ],
)
def test_what_cannot_be_written_is_said_and_nothing_is_there(box, tools, path, content, code):
    before = everything(box)
    assert failed(tools["write_file"], path, content) == failed(tools["append_file"], path, content, 0) == code
    assert everything(box) == before


# ------------------------------------------------------------------------------------------------- append


def test_a_file_written_in_pieces_has_the_hash_of_the_whole(box, tools):
    pieces = [f"第 {number} 段\n" * 500 for number in range(20)]
    size = 0
    for piece in pieces:
        answer = tools["append_file"]("new/long.md", piece, size)
        size = answer["bytes"]
    whole = "".join(pieces).encode()
    assert answer == {"success": True, "path": "new/long.md", "repeated": False, "bytes": len(whole), "sha256": sha256(whole)}
    assert tools["file_hash"]("new/long.md")["sha256"] == sha256(whole)
    assert (box / "new/long.md").read_bytes() == whole


def test_a_piece_that_comes_again_is_noticed_and_not_added_twice(box, tools):
    for piece, offset, repeated, size in [("ab", 0, False, 2), ("ab", 0, True, 2), ("ab", 2, False, 4), ("ab", 0, True, 4)]:
        answer = tools["append_file"]("x.txt", piece, offset)
        assert (answer["repeated"], answer["bytes"]) == (repeated, size)
    assert (box / "x.txt").read_bytes() == b"abab"


@pytest.mark.parametrize(("piece", "offset"), [("other", 0), ("note\nand more", 2), ("x", 100), ("", 3)])
def test_a_piece_that_does_not_follow_is_refused_with_the_size(box, tools, piece, offset):
    with pytest.raises(ToolError, match=rf"^'notes.txt' has 7 bytes, not {offset}; go on with offset=7, or write it anew$"):
        tools["append_file"]("notes.txt", piece, offset)
    assert (box / "notes.txt").read_bytes() == b"a note\n"


def test_the_second_piece_of_a_file_that_is_not_there_makes_none(box, tools):
    assert failed(tools["append_file"], "missing/x.txt", "more", 5) == "not_found"
    assert not (box / "missing").exists()


def test_pieces_that_come_at_once_are_added_once(box, tools):
    start = threading.Barrier(8)

    def add(_):
        start.wait(5)
        return tools["append_file"]("x.txt", "piece" * 1_000, 0)["repeated"]

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(add, range(8))) == [False] + [True] * 7
    assert (box / "x.txt").stat().st_size == 5_000


def test_a_file_in_pieces_does_not_grow_for_ever(box, tools):
    with (box / "large.txt").open("wb") as file:
        file.truncate(MOST_FILE - 2)
    assert failed(tools["append_file"], "large.txt", "abc", MOST_FILE - 2) == "too_large"
    assert (box / "large.txt").stat().st_size == MOST_FILE - 2


def test_a_half_written_piece_is_taken_back(box):
    class Full:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, content):
            if len(content) < 10:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(content[:10])

    with (box / "notes.txt").open("r+b", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        files._append(Full(file), b"x" * 25, 7, "notes.txt")
    assert (box / "notes.txt").read_bytes() == b"a note\n"


# ------------------------------------------------------------------------------------------------- patch


def test_a_patch_changes_one_place_and_nothing_else(box, tools):
    before = "\ufeffport: 80\r\nhost: 一\r\nname: 80\r\n".encode()
    (box / "c.yaml").write_bytes(before)
    answer = tools["patch_file"]("c.yaml", "host: 一", "host: 二", sha256=sha256(before).upper())
    after = before.replace("一".encode(), "二".encode())
    assert answer == {"success": True, "path": "c.yaml", "line": 2, "bytes": len(after), "sha256": sha256(after)}
    assert (box / "c.yaml").read_bytes() == after
    tools["patch_file"]("c.yaml", "name: 80\r\n", "")
    assert (box / "c.yaml").read_bytes() == after.removesuffix(b"name: 80\r\n")


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("80", "81", "not_unique", "the old text is in 'c.yaml' more than once, in lines 1 and 3; give more"),
        ("aa", "b", "not_unique", "the old text is in 'c.yaml' more than once, in lines 2 and 2; give more"),
        ("90", "x", "no_match", "the old text is not in 'c.yaml'; read the file and copy it exactly"),
        ("", "x", "no_match", "the old text is not in 'c.yaml'; read the file and copy it exactly"),
        (
            "90",
            "80",
            "no_match",
            "the old text is not in 'c.yaml'; the new text is there already; read the file and copy it exactly",
        ),
        (
            "80\nhost",
            "x",
            "no_match",
            "the old text is not in 'c.yaml'; its lines end in \\r\\n; read the file and copy it exactly",
        ),
    ],
)
def test_a_patch_that_does_not_fit_is_refused_with_the_reason(box, tools, old, new, code, said):
    content = b"port: 80\r\nhost: aaa\r\nname: 80\r\n"
    (box / "c.yaml").write_bytes(content)
    with pytest.raises(ToolError) as error:
        tools["patch_file"]("c.yaml", old, new)
    assert (error.value.code, str(error.value)) == (code, said)
    assert (box / "c.yaml").read_bytes() == content


def test_a_patch_of_a_file_that_has_changed_since_is_refused_with_its_hash(box, tools):
    with pytest.raises(
        ToolError, match=rf"^'notes.txt' has changed: its sha256 is {sha256(b'a note' + bytes([10]))}; read it again$"
    ):
        tools["patch_file"]("notes.txt", "note", "word", sha256="0" * 64)
    assert (box / "notes.txt").read_bytes() == b"a note\n"
