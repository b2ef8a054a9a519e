"""Every deliberate error: a code, an exit code, its facts, one sentence."""

from __future__ import annotations

import pytest

from taskyard import errors

MADE: list[tuple[errors.TaskyardError, str, int]] = [
    (errors.TaskyardError("x"), "error", 1),
    (errors.UsageError("x"), "usage", 2),
    (errors.BadName("a list", "x" * 300, "it is too long"), "bad_name", 2),
    (errors.BadId("9" * 300), "bad_id", 2),
    (errors.BadJobId("../x"), "bad_job_id", 2),
    (errors.BadText("subject", "is empty"), "bad_text", 2),
    (errors.BadValue("status", "\x1b[31m", "pending"), "bad_value", 2),
    (errors.BadPlan("plan.yaml", "task 2 has no subject", line=4), "bad_plan", 2),
    (errors.MemberNotStarted("ada", "crew", "its window closed at once"), "member_not_started", 1),
    (errors.BadWorkflow("ci.yaml", "step a: it has no key 'rnu'", line=3), "bad_workflow", 2),
    (errors.NotFound("x"), "not_found", 4),
    (errors.TaskNotFound("7", list_name="plan", nearest=["6"]), "not_found", 4),
    (errors.TaskNotFound("7", list_name="plan", restorable=True), "not_found", 4),
    (errors.ListNotFound("plan", nearest=["plans"]), "not_found", 4),
    (errors.RecipientNotFound("bob", team="t"), "recipient_not_found", 4),
    (errors.TeamNotFound("t"), "team_not_found", 4),
    (errors.JobNotFound("b00000000", nearest=["b00000001"]), "job_not_found", 4),
    (errors.KindNotFound("countdwn", nearest=["countdown"]), "kind_not_found", 4),
    (errors.OutputGone("b00000000", status="failed", cause="exited", exit_code=3), "output_gone", 4),
    (errors.EventsGone(7, first=100, last=200), "events_gone", 4),
    (errors.EventsGone(700, first=100, last=200), "events_gone", 4),
    (errors.NothingFree("ada", list_name="plan", open=2, taken=1), "nothing_free", 4),
    (errors.Conflict("x"), "conflict", 5),
    (errors.AlreadyClaimed("7", "bob"), "already_claimed", 5),
    (errors.AlreadyClaimed("7", "bob", forcible=True), "already_claimed", 5),
    (errors.StillOpen([str(number) for number in range(1, 13)]), "still_open", 5),
    (errors.JobEnded("b12345678", "killed"), "job_ended", 5),
    (errors.JobNotBegun("b12345678", "job b00000000"), "job_not_begun", 5),
    (errors.NoInput("b12345678", "takes no input", "Start it with --stdin."), "no_input", 5),
    (errors.BackgroundDisabled("TASKYARD_DISABLE_BACKGROUND_TASKS"), "background_disabled", 5),
    (errors.TooDeep("b12345678", 5), "too_deep", 5),
    (errors.TooManyCallers(100), "too_many_callers", 5),
    (errors.DreamHeld(["hours"], "the last one was 2h ago", opens_at=1500, forcible=True), "dream_held", 5),
    (errors.CannotListen("127.0.0.1:80", "the port is taken", "Choose another."), "cannot_listen", 1),
    (errors.AlreadyClaimed("7", "bob", instance="x"), "already_claimed", 5),
    (errors.AlreadyResolved("7"), "already_resolved", 5),
    (errors.Blocked("7", ["1", "2"]), "blocked", 5),
    (errors.AgentBusy("bob", ["1"]), "agent_busy", 5),
    (errors.BadTransition("7", "completed", "in_progress"), "bad_transition", 5),
    (errors.Cycle(["1", "2", "1"]), "cycle", 5),
    (errors.LeaseLost("7", "bob"), "lease_lost", 5),
    (errors.LeaseLost("7", None), "lease_lost", 5),
    (errors.HookRefused("TaskCreated", "./h", 2, ""), "hook_refused", 5),
    (errors.AcceptanceFailed("7", "make", None, ""), "acceptance_failed", 5),
    (errors.AcceptanceFailed("7", "make", 1, "out"), "acceptance_failed", 5),
    (errors.Untrusted("A hook", "./h", "taskyard trust"), "untrusted", 5),
    (errors.PathsOverlap("7", "8", "bob", ["src"]), "paths_overlap", 5),
    (errors.AlreadyExists("a task", "#7"), "already_exists", 5),
    (errors.ListNotEmpty("release", 2), "list_not_empty", 5),
    (errors.NothingToRestore("7", list_name="plan"), "already_exists", 5),
    (errors.TeamHasLivingMembers("t", ["bob"]), "team_has_living_members", 5),
    (errors.Busy("list 'plan'", "process 5", 1.5), "busy", 75),
    (errors.Damaged("7.json", "it is empty"), "damaged", 1),
    (errors.EngineNotFound("comand", nearest=["command"]), "engine_not_found", 4),
    (errors.RemoteNotFound("ry", nearest=["ray"]), "remote_not_found", 4),
    (errors.StoreAway("db.example/yard", "connection refused", seconds=12.0), "disconnected", 75),
    (errors.SchemaMismatch("db.example/yard", found=0, known=2), "schema_mismatch", 1),
    (errors.SchemaMismatch("db.example/yard", found=1, known=2), "schema_mismatch", 1),
    (errors.SchemaMismatch("db.example/yard", found=3, known=2), "schema_mismatch", 1),
    (errors.HostAway("forge", "b3k9x0q2m", seconds=95.0), "host_away", 75),
    (errors.HostAway("forge", "b3k9x0q2m", seconds=95.0, is_withdrawn=False), "host_away", 75),
    (errors.OutcomeUnknown("forge", "b3k9x0q2m", "type into"), "outcome_unknown", 1),
    (errors.RemoteAway("ray", "connection refused"), "remote_away", 75),
    (errors.RemoteRefused("ray", "the token is wrong", "Set RAY_TOKEN."), "remote_refused", 1),
    (errors.MissingExtra("The MCP server", "mcp", "mcp_types"), "missing_extra", 2),
    (errors.BadConfig("/home/ada/.claude.json", "it is not JSON"), "bad_config", 1),
    (errors.NotGenuine("it differs"), "not_genuine", 1),
    (errors.StorageError("7.json", "the disk is full"), "storage", 1),
    (errors.StorageError("7.json", "the disk is full").writing(list("12345"), "Nothing was changed."), "storage", 1),
    (errors.Cancelled("The hook"), "cancelled", 130),
]


@pytest.mark.req("L-08")
@pytest.mark.parametrize(("error", "code", "exit_code"), MADE)
def test_each_error_has_its_code_and_exit_code(error: errors.TaskyardError, code: str, exit_code: int) -> None:
    assert (error.code, error.exit_code) == (code, exit_code)
    assert str(error)
    assert "\x1b" not in str(error)


@pytest.mark.parametrize(("error", "code", "exit_code"), MADE)
def test_facts_are_plain_and_short(error: errors.TaskyardError, code: str, exit_code: int) -> None:
    for name, value in error.facts().items():
        assert not name.startswith("_")
        assert isinstance(value, str | int | float | bool | tuple | None)
        assert len(str(value)) < 200


@pytest.mark.parametrize(("error", "code", "exit_code"), MADE)
def test_each_message_begins_with_its_fact(error: errors.TaskyardError, code: str, exit_code: int) -> None:
    assert error.fact
    assert str(error).startswith(error.fact)


def test_every_error_is_tried_above() -> None:
    known = {
        name
        for name in errors.__all__
        if isinstance(found := getattr(errors, name), type) and issubclass(found, Exception)
    }

    assert {type(error).__name__ for error, _, _ in MADE} == known


@pytest.mark.req("L-06")
def test_a_cycle_is_shown_as_a_path() -> None:
    assert "#1 → #2 → #1" in str(errors.Cycle(["1", "2", "1"]))


@pytest.mark.req("L-11")
def test_a_missing_task_says_how_to_get_it_back_or_what_is_near() -> None:
    assert "taskyard task restore 7" in str(errors.TaskNotFound("7", list_name="p", nearest=["6"], restorable=True))
    assert "Nearest: #6, #8" in str(errors.TaskNotFound("7", list_name="p", nearest=["6", "8"]))
