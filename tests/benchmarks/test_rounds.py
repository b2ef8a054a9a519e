"""Rounds take turns, stop when they may, and judge by the worst they saw."""

from __future__ import annotations

import itertools

from bench.rounds import Goal, Row, Sample, measured, spread


def row(ours: list[float], yardstick: list[float], goal: Goal | None = None) -> Row:
    own, other = itertools.cycle(ours), itertools.cycle(yardstick)
    return Row("some.row", "ms", lambda: Sample(next(own)), lambda: Sample(next(other)), goal)


def test_the_two_sides_take_turns_and_in_who_goes_first() -> None:
    turns: list[str] = []

    def side(name: str) -> Sample:
        turns.append(name)
        return Sample(1.0)

    measured(Row("r", "ms", lambda: side("ours"), lambda: side("theirs"), fewest=3))
    assert turns == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_rounds_end_when_both_medians_stand_still() -> None:
    assert measured(row([10.0], [100.0])).rounds == 5


def test_noisy_rounds_go_on_until_the_time_is_used_up() -> None:
    clock = itertools.count(0.0, 1.0)
    outcome = measured(row([1.0, 9.0], [5.0])._replace(seconds=12), now=lambda: next(clock))
    assert 5 < outcome.rounds < 40


def test_a_time_is_judged_by_how_many_times_faster_ours_is() -> None:
    outcome = measured(row([10.0], [120.0], Goal("≥", 10)))
    assert (outcome.ratio, outcome.met) == (12.0, True)
    assert measured(row([10.0], [99.0], Goal("≥", 10))).met is False


def test_a_rate_is_judged_by_how_many_times_more_ours_does() -> None:
    assert measured(row([1200.0], [100.0], Goal("≥", 10))._replace(is_rate=True)).ratio == 12.0


def test_a_time_ratio_is_judged_from_above() -> None:
    assert measured(row([3.0], [1.0], Goal("≤", 4))._replace(as_time_ratio=True)).met is True
    assert measured(row([5.0], [1.0], Goal("≤", 4))._replace(as_time_ratio=True)).met is False


def test_a_fault_of_ours_is_never_a_goal_met_and_is_printed() -> None:
    faulty = Sample(1.0, {"double_claims": 1.0}, ("1 tasks were claimed twice",))
    outcome = measured(Row("r", "ms", lambda: faulty, lambda: Sample(100.0), Goal("≥", 20)))
    assert outcome.met is False
    assert outcome.record()["faults"] == ["1 tasks were claimed twice"]
    assert outcome.record()["double_claims"] == 1.0


def test_facts_are_told_by_their_worst_round() -> None:
    waits = itertools.cycle([5.0, 80.0, 7.0])
    outcome = measured(Row("r", "ms", lambda: Sample(1.0, {"longest_wait_ms": next(waits)}), lambda: Sample(1.0)))
    assert outcome.facts["longest_wait_ms"] == 80.0


def test_a_record_has_the_agreed_fields_and_a_row_without_a_goal_judges_nothing() -> None:
    record = measured(row([2.0], [4.0])).record()
    assert list(record)[:7] == ["name", "ours", "yardstick", "ratio", "unit", "goal", "met"]
    assert (record["ratio"], record["goal"], record["met"]) == (2.0, None, None)
    assert measured(row([2.0], [4.0], Goal("≥", 10))).record()["goal"] == "≥ 10×"


def test_quick_takes_one_round() -> None:
    assert measured(row([1.0, 9.0], [5.0]), quick=True).rounds == 1


def test_spread_is_zero_for_equal_values_and_shrinks_with_their_number() -> None:
    assert spread([4.0, 4.0, 4.0]) == 0.0
    assert spread([1.0, 2.0, 3.0] * 10) < spread([1.0, 2.0, 3.0])


def test_a_row_that_cannot_be_measured_says_why_and_has_not_met_its_goal() -> None:
    record = row([1.0], [1.0], Goal("≥", 10)).failed("no `node` on the PATH")
    assert list(record)[:7] == ["name", "ours", "yardstick", "ratio", "unit", "goal", "met"]
    assert (record["ours"], record["met"], record["error"]) == (None, False, "no `node` on the PATH")
