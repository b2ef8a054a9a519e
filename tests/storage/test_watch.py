"""What changed in a folder: told at once, by one watcher a process, also for a folder made later."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from support.python import run_python
from support.wait import until
from taskyard.storage import change_feed, inotify
from taskyard.storage.inotify import Watcher


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.mark.req("L-18")
def test_the_first_look_is_at_everything_and_later_ones_at_what_changed(tmp_path: Path, watcher: Watcher) -> None:
    found = watcher.follow(str(tmp_path))
    assert found.changed() is None
    assert found.changed() == set()

    (tmp_path / "1.json").write_text("x")
    (tmp_path / "2.json").write_text("x")
    assert found.changed() == {"1.json", "2.json"}

    (tmp_path / "2.json").unlink()
    (tmp_path / "1.json").rename(tmp_path / "3.json")
    assert found.changed() == {"1.json", "2.json", "3.json"}
    assert found.changed() == set()


@pytest.mark.req("L-18")
def test_a_folder_made_later_is_picked_up_however_deep(tmp_path: Path, watcher: Watcher) -> None:
    folder = tmp_path / "a" / "b" / "c"
    found = watcher.follow(str(folder))
    assert found.changed() is None

    (tmp_path / "a").mkdir()
    found.changed()
    folder.mkdir(parents=True)
    assert found.changed() is None
    assert found.is_exact
    found.changed()
    (folder / "1.json").write_text("x")

    assert found.changed() == {"1.json"}


@pytest.mark.req("L-18")
def test_a_folder_made_between_two_of_our_calls_is_not_missed(
    tmp_path: Path, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b"
    queue = watcher._queue
    assert queue is not None
    real = queue.add

    def add(path: str) -> int:
        if path == str(tmp_path) and not folder.parent.exists():
            folder.parent.mkdir()  # another process, after we found nothing and before we follow its parent
        return real(path)

    monkeypatch.setattr(queue, "add", add)
    found = watcher.follow(str(folder))
    found.changed()
    folder.mkdir()

    assert found.wait(5)
    assert found.changed() is None
    assert found.is_exact


@pytest.mark.req("L-18")
def test_a_folder_that_was_replaced_is_followed_again(tmp_path: Path, watcher: Watcher) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    found = watcher.follow(str(folder))
    found.changed()
    folder.rename(tmp_path / "old")
    folder.mkdir()
    assert found.changed() is None
    found.changed()
    (folder / "1.json").write_text("x")
    assert found.changed() == {"1.json"}

    (folder / "1.json").unlink()
    folder.rmdir()
    assert found.changed() is None
    assert not found.is_exact


@pytest.mark.req("L-18")
def test_waiting_ends_at_a_change_and_not_before(tmp_path: Path, watcher: Watcher) -> None:
    found = watcher.follow(str(tmp_path))
    found.changed()
    assert not found.wait(0.02)

    timer = threading.Timer(0.05, (tmp_path / "1.json").write_text, ["x"])
    timer.start()

    assert found.wait(10, debounce=0.01)
    assert found.changed() == {"1.json"}


@pytest.mark.req("L-18")
def test_a_signal_wakes_those_who_follow_the_folder_and_nobody_else(tmp_path: Path, watcher: Watcher) -> None:
    (tmp_path / "a").mkdir()
    here, there = watcher.follow(str(tmp_path / "a")), watcher.follow(str(tmp_path))
    assert (here.changed(), there.changed()) == (None, None)

    watcher.signal(str(tmp_path / "a"))

    assert here.wait(5)
    assert not there.wait(0.02)


@pytest.mark.req("L-18")
def test_without_file_events_everything_may_have_changed_and_signals_still_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(self: object) -> None:
        raise OSError("too many")

    monkeypatch.setattr(inotify.Inotify, "__init__", none_left)
    watcher = Watcher()
    found = watcher.follow(str(tmp_path))
    assert found.changed() is None
    assert found.changed() is None
    timer = threading.Timer(0.05, watcher.signal, [str(tmp_path)])
    timer.start()
    began = time.monotonic()

    assert found.wait(30)
    assert time.monotonic() - began < 0.9
    watcher.drain()
    found.close()


@pytest.mark.req("L-18")
def test_a_folder_that_cannot_be_followed_is_looked_at_each_time(tmp_path: Path, watcher: Watcher) -> None:
    (tmp_path / "file").write_text("")
    found = watcher.follow(str(tmp_path / "file"))

    assert found.changed() is None
    assert found.changed() is None
    assert found.wait(0.01)


@pytest.mark.req("L-18")
def test_more_events_than_the_kernel_keeps_mean_that_anything_may_have_changed(tmp_path: Path) -> None:
    watcher = Watcher()
    found = watcher.follow(str(tmp_path))
    found.changed()

    watcher._dispatch(-1, inotify.OVERFLOW, "")

    assert found.changed() is None


@pytest.mark.req("L-18")
def test_one_inotify_instance_serves_every_reader_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    followed = [
        change_feed.subscribe(str(tmp_path)),
        change_feed.subscribe(str(tmp_path / "a")),
        change_feed.subscribe(str(tmp_path)),
    ]
    instances = [
        name
        for name in os.listdir("/proc/self/fd")
        if os.path.lexists(f"/proc/self/fd/{name}") and "inotify" in os.readlink(f"/proc/self/fd/{name}")
    ]
    ours = inotify.watcher()._queue
    assert ours is not None
    (tmp_path / "1.json").write_text("x")

    assert str(ours.fd) in instances
    assert len({id(one._watcher) for one in followed}) == 1
    assert [one.changed() for one in followed] == [None, None, None]
    for one in followed:
        one.close()


@pytest.mark.req("L-18")
def test_what_is_followed_no_longer_is_told_nothing(tmp_path: Path, watcher: Watcher) -> None:
    one, two = watcher.follow(str(tmp_path)), watcher.follow(str(tmp_path))
    assert (one.changed(), two.changed()) == (None, None)
    one.close()
    one.close()
    (tmp_path / "1.json").write_text("x")

    assert two.changed() == {"1.json"}
    assert not one.wait(0.0) or one.at is None
    two.close()
    assert watcher._by_number == {}


@pytest.mark.req("L-18")
def test_parent_and_forked_child_each_hear_of_every_change(tmp_path: Path) -> None:
    found = change_feed.subscribe(str(tmp_path))
    found.changed()
    back, forth = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            first = found.changed()  # the child looks at everything once
            second = found.changed()
            (tmp_path / "1.json").write_text("x")
            third = found.changed()
            os.write(forth, repr([first, second, third]).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert os.read(back, 1000).decode() == "[None, set(), {'1.json'}]"
    assert found.changed() == {"1.json"}
    os.close(back)
    os.close(forth)
    found.close()


@pytest.mark.req("L-18")
def test_following_and_waiting_do_not_delay_the_exit_of_the_process(tmp_path: Path) -> None:
    code = """
        import sys, threading, time
        from taskyard.storage.change_feed import subscribe as follow
        found = follow(sys.argv[1])
        threading.Thread(target=found.wait, args=(3600,), daemon=True).start()
        print(time.monotonic())
    """
    said = float(run_python(code, str(tmp_path)))

    assert time.monotonic() - said < 5


@pytest.mark.req("L-18")
def test_a_signal_costs_nothing_where_nobody_watches() -> None:
    code = """
        import sys
        from taskyard.storage.change_feed import wake_subscribers as signal
        signal("/nowhere")
        print("taskyard.storage.inotify" in sys.modules)
    """
    assert run_python(code).strip() == "False"


@pytest.mark.req("L-18")
def test_threads_that_ask_at_the_same_time_share_one_watcher() -> None:
    script = """
        import sys, threading
        sys.setswitchinterval(1e-6)
        from taskyard.storage import inotify as watch
        start, found = threading.Barrier(16), []
        def ask():
            start.wait()
            found.append(watch.watcher())
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(set(map(id, found))))
    """
    assert [run_python(script).strip() for _ in range(3)] == ["1", "1", "1"]


@pytest.mark.req("L-18")
def test_a_flood_of_events_wakes_nobody_thousands_of_times_a_second(
    tmp_path: Path, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken = 0
    drain = watcher.drain

    def counting() -> None:
        nonlocal woken
        woken += 1
        drain()

    monkeypatch.setattr(watcher, "drain", counting)
    with watcher.follow(str(tmp_path)) as folder, (tmp_path / "output").open("wb", buffering=0) as output:
        watcher.listen()
        began = time.monotonic()
        while time.monotonic() - began < 1.0:
            output.write(b"y")
        output.close()
        most = 150 + 250 * (time.monotonic() - began)
        until(lambda: folder.has_news)
        assert woken < most
        assert folder.changed() is None
        (tmp_path / "after").touch()
        until(lambda: "after" in (folder.changed() or ()))
