"""The fence around one folder: every path that leads out is refused, also one that is exchanged between the look and the use."""

import contextlib
import hashlib
import os
import random
import stat
from pathlib import Path

import pytest

from nb_agent.errors import SettingError, ToolError
from nb_agent.guards import workspace
from nb_agent.guards.workspace import Workspace
from nb_agent.kit.files import file_tools

SECRET = "nobody may read this"


@pytest.fixture
def box(tmp_path):
    """A folder with links of every kind, beside others that are none of its business."""
    root = tmp_path / "box"
    for folder in ("box/sub/deep", "box-old", "far"):
        (tmp_path / folder).mkdir(parents=True)
    for place in ("secret.txt", "box-old/secret.txt", "far/secret.txt"):
        (tmp_path / place).write_text(SECRET, encoding="utf-8")
    for place in ("notes.txt", "sub/a.md", "sub/deep/b.md"):
        (root / place).write_text("a note\n", encoding="utf-8")
    links = {
        "out": "../box-old",
        "far": str(tmp_path / "far"),
        "link.txt": "../secret.txt",
        "up": "..",
        "sub/up": "../..",
        "sub/deep/out": "../../out",
        "circle": "circle",
        "here": "there",
        "there": "here/x",
        "dangling": "../made.txt",
        "lost": "nowhere.txt",
        "inner.txt": "notes.txt",
        "in": "sub/deep",
        "self": ".",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture(params=["step by step", "by paths"])
def space(box, request, monkeypatch):
    """The fence as it works on POSIX, and as it works where folders have no descriptors."""
    if request.param == "by paths":
        monkeypatch.setattr(workspace, "_STEPS", False)
    return Workspace(box)


def outside(box):
    """Everything beside the folder: names, kinds, contents, and the times of folders, which a file made and deleted changes."""
    digest = hashlib.sha256()
    for path in [box.parent, *sorted(box.parent.rglob("*"))]:
        if path != box and not path.is_relative_to(box):
            status = path.lstat()
            digest.update(f"{path} {status.st_mode} {status.st_mtime_ns} {status.st_ino}\n".encode())
            digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def absolute(path, root):
    """The paths of the case that are "given absolute" are written with R, the folder above the root."""
    return str(root.parent / path.split()[0].removeprefix("R/")) if path.startswith("R/") else path


def refused(attempt):
    with pytest.raises(ToolError) as error:
        attempt()
    assert error.value.code == "path_not_allowed"
    return str(error.value)


# ------------------------------------------------------------------------------------------------- where paths lead (case H01)


def test_paths_of_the_case_are_accepted_and_refused(box, cases):
    space, case = Workspace(box), cases["H01"]["expect"]
    for path in case["accept"]:
        assert space.place(absolute(path, box)).is_relative_to(box)
    for path in [*case["reject"], "~/x"]:
        assert str(box.parent) not in refused(lambda: space.place(absolute(path, box))).replace(absolute(path, box), "")  # noqa: B023  called at once
    assert space.place("") == space.place(".") == space.place("sub/..") == box


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("new/deep/x.txt", "new/deep/x.txt"),
        ("inner.txt", "notes.txt"),
        ("in/b.md", "sub/deep/b.md"),
        ("in/../a.md", "sub/a.md"),
        ("self/self/notes.txt", "notes.txt"),
        ("sub//deep/./b.md", "sub/deep/b.md"),
        ("up/box/notes.txt", "notes.txt"),
        ("notes.txt/", "notes.txt"),
        ("lost", "nowhere.txt"),
        (".hidden", ".hidden"),
        ("..x", "..x"),
        ("x ~", "x ~"),
        ("比例：一.md", "比例：一.md"),
        ("．．/x", "．．/x"),
        ("con-sole.txt", "con-sole.txt"),
        ("$HOME/x", "$HOME/x"),
        ("%2e%2e/x", "%2e%2e/x"),
        ("n" * 255, "n" * 255),
    ],
)
def test_a_path_that_stays_inside_is_named_by_the_place_it_leads_to(box, path, name):
    space = Workspace(box)
    assert space.name(space.place(path)) == name
    assert space.place(str(space.place(path))) == box / name


@pytest.mark.parametrize(
    "path",
    [
        *("link.txt", "out/secret.txt", "out/new.txt", "sub/deep/out/new.txt", "dangling", "up/secret.txt", "sub/up", "far"),
        *("circle", "circle/x.txt", "here/x", "there", "circle/../out/x.txt", "in/../../../x", "self/../x"),
        *(
            "/etc/passwd",
            "/",
            "//host/share/x.txt",
            "~",
            "~root/x",
            "..\\x.txt",
            "sub\\..\\..\\x",
            "\\\\host\\share\\x",
            "\\\\?\\C:\\x",
        ),
        *("C:\\x.txt", "C:/x.txt", "C:x.txt", "C:", "notes.txt:stream", "notes.txt::$DATA", "sub:x/a.md", "file:///etc/passwd"),
        *("CON", "nul", "sub/NUL.txt", "COM1.txt", "lpt9", "com¹", "aux .txt", "con/x.txt", "CONIN$", "prn.tar.gz"),
        *("notes.txt.", "notes.txt ", "sub./a.md", "sub /a.md", ".. /x", "...", "sub/.. ./x", ". ./x"),
        *("a\nb.txt", "a\x00", "sub/\x00", "a\x7f", "a\x85", "a\u2028b", "half \ud800.txt", "gpj\u202etxt.exe"),
        *("x" * 5_000, "x" * 256, "é" * 128, f"sub/{'x' * 300}/a.md", "a/" * 600),
        *("pipe", "sub/../pipe"),
    ],
)
def test_a_path_that_leads_out_or_means_something_else_elsewhere_is_refused(box, path):
    assert len(refused(lambda: Workspace(box).place(path))) < 1_500


def test_a_device_is_no_file(box):
    space = Workspace("/dev")
    refused(lambda: space.place("null"))


def test_a_folder_whose_name_begins_alike_is_another_one(box):
    assert refused(lambda: Workspace(box).place(f"{box}-old/secret.txt")).endswith(
        "is outside the folder; give a path inside it, such as 'report.md'"
    )


def test_an_absolute_path_is_checked_only_below_the_root(tmp_path):
    root = tmp_path / "odd: name."
    root.mkdir()
    space = Workspace(root)
    assert space.place(f"{root}/a.md") == root / "a.md"
    refused(lambda: space.place(f"{root}/a:b"))


def test_a_root_that_is_a_link_is_where_it_leads(box):
    (box.parent / "alias").symlink_to(box)
    space = Workspace(box.parent / "alias")
    assert space.root == box
    assert space.place(str(box.parent / "alias" / "notes.txt")) == box / "notes.txt"


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(SettingError, match="is no folder; make it first, or name another one"):
        Workspace(tmp_path / "missing")


# ------------------------------------------------------------------------------------------------- opening


def write(space, place):
    with space.changing(place, make=True) as file:
        file.write(b"changed")


def read(space, place):
    with space.reading(place) as file:
        return file.read()


USES = {"read": read, "change": write, "replace": lambda space, place: space.replace(place, b"changed")}


def test_files_are_read_changed_and_replaced(space, box):
    place = space.place("new/deep/x.txt")
    assert space.replace(place, b"first") is True
    place.chmod(0o640)
    assert space.replace(place, b"second") is False
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    assert read(space, place) == b"second"
    write(space, place)
    write(space, space.place("other/y.txt"))
    assert (place.read_bytes(), (box / "other/y.txt").read_bytes()) == (b"changed", b"changed")
    assert sorted(path.name for path in place.parent.iterdir()) == ["x.txt"]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("target", ["out", "sub/deep", "sub"])
def test_a_folder_that_becomes_a_link_between_the_look_and_the_use_is_refused(space, box, use, target):
    place = space.place("sub/deep/secret.txt")
    (box / "sub").rename(box / "moved")
    if target == "sub":
        (box / "sub").symlink_to(box.parent)
        (box.parent / "deep").mkdir()
        (box.parent / "deep" / "secret.txt").write_text(SECRET, encoding="utf-8")
    else:
        (box / "sub").mkdir()
        (box / "sub/deep").symlink_to(box / "out" if target == "out" else box.parent / "far")
    before = outside(box)
    assert "has become a link" in refused(lambda: USES[use](space, place))
    assert outside(box) == before


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("becomes", ["link", "pipe"])
def test_a_file_that_becomes_something_else_between_the_look_and_the_use_is_refused(space, box, use, becomes):
    place = space.place("notes.txt")
    place.unlink()
    place.symlink_to(box.parent / "secret.txt") if becomes == "link" else os.mkfifo(place)
    before = outside(box)
    assert "is no ordinary file" in refused(lambda: USES[use](space, place))
    assert outside(box) == before


@pytest.mark.parametrize("use", ["read", "change"])
@pytest.mark.parametrize("becomes", ["link", "pipe"])
def test_a_file_that_becomes_something_else_at_the_last_moment_is_not_used(space, box, use, becomes, monkeypatch):
    place, real = space.place("notes.txt"), os.open

    def late(name, flags, *rest, **named):
        if str(name).endswith("notes.txt"):
            place.unlink()
            place.symlink_to(box.parent / "secret.txt") if becomes == "link" else os.mkfifo(place)
        return real(name, flags, *rest, **named)

    monkeypatch.setattr(os, "open", late)
    before = outside(box)
    with pytest.raises((ToolError, OSError)):
        USES[use](space, place)
    assert outside(box) == before


def test_a_file_that_has_another_name_is_replaced_and_never_changed_in_place(space, box):
    os.link(box.parent / "secret.txt", box / "twin.txt")
    place = space.place("twin.txt")
    assert "hard link" in refused(lambda: write(space, place))
    space.replace(place, b"mine")
    assert (box.parent / "secret.txt").read_text(encoding="utf-8") == SECRET


def test_a_place_that_was_never_checked_is_not_opened(space, box):
    for place in (box.parent / "secret.txt", box / ".." / "secret.txt", box / "sub" / ".." / ".." / "secret.txt"):
        refused(lambda: read(space, place))  # noqa: B023  called at once
        refused(lambda: list(space.files(place)) or space.replace(place, b"x"))  # noqa: B023  likewise


def test_the_root_and_its_folders_are_no_files(space, box):
    for name in ("", "sub"):
        for use in USES.values():
            with pytest.raises(ToolError, match="is a folder, not a file"):
                use(space, space.place(name))


def test_files_are_found_without_following_links(space, box):
    (box / ".git").mkdir()
    (box / ".git" / "config").touch()
    assert sorted(map(space.name, space.files(box))) == ["notes.txt", "sub/a.md", "sub/deep/b.md"]
    assert list(space.files(box / "out")) == list(space.files(box / "missing")) == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not list open descriptors")
def test_no_descriptor_is_left_open(space, box):
    def count():
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    for name in ("notes.txt", "sub/deep/b.md", "sub", "missing/x", "notes.txt/x"):
        for use in USES.values():
            with contextlib.suppress(ToolError, OSError):
                use(space, space.place(name))
    list(space.files(box))
    assert count() == before


# ------------------------------------------------------------------------------------------------- fuzz

PIECES = [
    *("..", "..", "..", ".", "", "sub", "deep", "notes.txt", "a.md", "b.md", "secret.txt", "box", "box-old", "far", "new", "x.txt"),
    *("out", "link.txt", "up", "circle", "here", "there", "dangling", "lost", "inner.txt", "in", "self", "pipe"),
    *(
        "．．",
        "‥",
        "․․",
        "…",
        ".. ",
        "..\x00",
        "...",
        "..;",
        "%2e%2e",
        "..%2f",
        "~",
        "~root",
        "C:",
        "c:x",
        "\\\\host",
        "..\\..",
        "\\",
    ),
    *(
        "nul",
        "COM1.txt",
        "a.txt:b",
        "x\n",
        "\x00",
        "\u202e",
        "\ud800",
        "n" * 200,
        "n" * 300,
        "é" * 130,
        "*.md",
        "**",
        "[a-z]",
        "$HOME",
        "-",
    ),
]


def paths(number, box):
    """Paths of pieces, some with an absolute beginning; the same ones each time."""
    draw = random.Random(20)
    starts = [
        str(box),
        str(box.parent),
        f"{box}-old",
        f"{box}/out",
        "/",
        "//",
        "/etc",
        "/proc/self/cwd",
        "/proc/self/root",
        "~",
        "C:/",
        "\\\\?\\",
    ]
    for _ in range(number):
        pieces = draw.choices(PIECES, k=draw.randint(1, 7))
        if draw.random() < 0.2:
            pieces.insert(0, draw.choice(starts))
        yield draw.choice("////\\").join(pieces)


def outcome(call, path):
    """What a call gives, or its error."""
    try:
        return call(path)
    except ToolError as error:
        return error


def test_of_100_000_paths_none_leads_out(box):
    space, accepted = Workspace(box), 0
    for path in paths(100_000, box):
        place = outcome(space.place, path)
        if isinstance(place, ToolError):
            assert place.code == "path_not_allowed"
        else:
            accepted += 1
            real = os.path.realpath(place)
            assert real == str(place)
            assert real == str(box) or real.startswith(f"{box}/")
    assert 3_000 < accepted < 80_000  # both sides of the fence were tried


@pytest.mark.parametrize("steps", [True, False])
def test_tools_that_are_given_any_path_read_and_change_nothing_outside(box, steps, monkeypatch):
    monkeypatch.setattr(workspace, "_STEPS", steps)
    read, search, write, append, patch, digest = file_tools(box)
    calls = [
        read,
        digest,
        search,
        lambda path: search(path, "nobody"),
        lambda path: write(path, "mine"),
        lambda path: append(path, "mine", 0),
        lambda path: patch(path, "nobody", "somebody"),
        lambda path: patch(path, "mine", "yours"),
    ]
    before, done = outside(box), 0
    for number, path in enumerate(paths(10_000, box)):
        answer = outcome(calls[number % len(calls)], path)
        assert SECRET not in str(answer)
        if not isinstance(answer, ToolError):
            done += 1
            names = answer.get("files", [answer.get("path")])
            assert all((box / name).resolve() == box / name for name in names)
    assert done > 300
    assert outside(box) == before
