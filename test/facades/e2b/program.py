"""A program written for E2B, with its Python client: nothing in it knows of another platform."""

import time

from e2b import CommandExitException, NotFoundException, PtySize, Sandbox, Template


def commands(box):
    told = box.commands.run("echo $GREETING; echo no >&2", envs={"GREETING": "hello"})
    assert (told.stdout, told.stderr, told.exit_code) == ("hello\n", "no\n", 0)
    try:
        box.commands.run("exit 3")
        raise AssertionError("the exit code is not told")
    except CommandExitException as error:
        assert error.exit_code == 3
    cat = box.commands.run("cat", background=True, stdin=True)
    box.commands.send_stdin(cat.pid, "typed\n")
    box.commands.close_stdin(cat.pid)
    assert cat.wait().stdout == "typed\n"


def files(box):
    box.files.write("/tmp/new/a.txt", "text")
    box.files.write_files([{"path": "/tmp/new/b", "data": "b"}, {"path": "/tmp/new/c", "data": b"\x00\xff"}])
    assert box.files.read("/tmp/new/a.txt") == "text"
    assert bytes(box.files.read("/tmp/new/c", format="bytes")) == b"\x00\xff"
    assert [entry.name for entry in box.files.list("/tmp/new")] == ["a.txt", "b", "c"]
    assert not box.files.exists("/tmp/new/none")
    try:
        box.files.read("/tmp/new/none")
        raise AssertionError("a file that is not there is read")
    except NotFoundException:
        pass
    watch = box.files.watch_dir("/tmp/new")
    box.files.write("/tmp/new/watched", "x")
    events = []
    until = time.monotonic() + 60
    while not events and time.monotonic() < until:
        events = watch.get_new_events()
        time.sleep(0.02)
    assert events[0].name == "watched"
    watch.stop()


def terminal(box):
    pty = box.pty.create(size=PtySize(rows=20, cols=90))
    box.pty.send_stdin(pty.pid, b"stty size; exit\n")
    shown = []
    pty.wait(on_pty=shown.append)
    assert b"20 90" in b"".join(shown)


def lifetime(box):
    box.set_timeout(900)
    info = box.get_info()
    assert (info.metadata, info.state.value) == ({"user": "ann"}, "running")
    assert box.sandbox_id in [found.sandbox_id for found in Sandbox.list().next_items()]
    assert box.pause()
    assert box.get_info().state.value == "paused"
    assert Sandbox.connect(box.sandbox_id).files.read("/tmp/new/a.txt") == "text"
    assert len(box.get_metrics()) == 1


box = Sandbox.create(metadata={"user": "ann"}, timeout=300)
try:
    for part in (commands, files, terminal, lifetime):
        part(box)
finally:
    assert box.kill()
assert not box.is_running()

with open("note.txt", "w") as note:
    note.write("from a file")
painted = Template(file_context_path=".").from_template("base").copy("note.txt", "/etc/note.txt").run_cmd("echo 1 > /etc/one")
Template.build(painted, "painted-py")
box = Sandbox.create("painted-py")
try:
    assert (box.files.read("/etc/note.txt"), box.files.read("/etc/one")) == ("from a file", "1\n")
finally:
    assert box.kill()
