"""What changed in a folder, for an event loop: told at once, without a thread, and nothing stays behind."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from taskyard.storage.async_change_feed import subscribe_async


@pytest.mark.req("L-18")
def test_the_first_look_is_at_everything_and_later_ones_at_what_changed(tmp_path: Path) -> None:
    async def work() -> None:
        with subscribe_async(str(tmp_path)) as folder:
            assert await folder.news() is None
            waiting = asyncio.create_task(folder.news(10))
            await asyncio.sleep(0)
            (tmp_path / "1.json").write_text("x")
            assert await waiting == {"1.json"}
            assert await folder.news(0.01) == set()

    asyncio.run(work())


@pytest.mark.req("L-18")
def test_a_folder_made_later_is_picked_up(tmp_path: Path) -> None:
    async def work() -> None:
        with subscribe_async(str(tmp_path / "a" / "b")) as folder:
            assert await folder.news() is None
            assert await folder.news(0.01) == set()
            (tmp_path / "a" / "b").mkdir(parents=True)
            assert await folder.news(10) is None
            (tmp_path / "a" / "b" / "1.json").write_text("x")
            names = await folder.news(10)
            assert names is None or names == {"1.json"}

    asyncio.run(work())


@pytest.mark.req("L-18")
def test_many_readers_hear_of_the_same_change_whichever_thread_empties_the_queue(tmp_path: Path) -> None:
    async def work() -> None:
        with subscribe_async(str(tmp_path)) as one, subscribe_async(str(tmp_path)) as other:
            await one.news()
            await other.news()
            before = threading.active_count()
            waiting = [asyncio.create_task(folder.news(10)) for folder in (one, other)]
            await asyncio.sleep(0)

            await asyncio.to_thread((tmp_path / "1.json").write_text, "x")

            assert await asyncio.gather(*waiting) == [{"1.json"}, {"1.json"}]
            assert threading.active_count() <= before + 1, "the thread is the one that wrote"

    asyncio.run(work())


@pytest.mark.req("L-18")
def test_a_loop_that_follows_nothing_any_more_can_be_closed(tmp_path: Path) -> None:
    async def work() -> bool:
        with subscribe_async(str(tmp_path)) as folder:
            await folder.news()
        (tmp_path / "1.json").write_text("x")
        return True

    assert asyncio.run(work())
    assert asyncio.run(work()), "and the next loop begins anew"


@pytest.mark.req("L-18")
def test_news_in_a_folder_beside_wakes_too_and_names_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        with subscribe_async(str(tmp_path / "box"), str(tmp_path / "beside")) as folder:
            assert await folder.news() is None  # what happened before, nobody tells
            assert await folder.news(0.01) == set()
            (tmp_path / "beside" / "letter").touch()
            assert await folder.news(10) is None
            (tmp_path / "box" / "letter").touch()
            assert await folder.news(10) == {"letter"}

    (tmp_path / "box").mkdir()
    (tmp_path / "beside").mkdir()
    asyncio.run(scene())


@pytest.mark.req("L-18")
def test_somebody_who_knows_otherwise_may_say_that_there_is_news(tmp_path: Path) -> None:
    async def work() -> None:
        with subscribe_async(str(tmp_path)) as folder:
            await folder.news()
            threading.Timer(0.01, folder.ring).start()
            assert await folder.news(10) is None
            assert await folder.news(0.01) == set()

    asyncio.run(work())
