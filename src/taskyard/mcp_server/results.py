"""What a call answers when the job behind it is over, by the job's kind: in the foreground, or put off until then."""

from __future__ import annotations

from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.listing import job_facts
from taskyard.runtime.model import Job
from taskyard.runtime.task_output import TaskOutput
from taskyard.shapes import as_list, as_object
from taskyard.view.job_records import cost_usd


def ended(found: TaskOutput) -> Answer:
    """How it went, as the tool that started it says it."""
    by_kind = {"local_agent": _agent, "remote_agent": _remote_agent, "local_workflow": _workflow}
    return by_kind.get(found.job.type, _command)(found)


def _command(found: TaskOutput) -> Answer:
    """What a command printed, and how it ended."""
    job = found.job
    said = [found.output] if found.output.strip() else []
    code = job.end.exit_code if job.end is not None else None
    is_error = job.status.value != "completed"
    if is_error:
        said.append(_how(job))
    elif not said:
        said.append("(no output)")
    data = job_facts(job) | {"output": found.output, "was_truncated": found.was_truncated, "exitCode": code}
    return Answer("\n".join(said), data, is_error=is_error)


def _agent(found: TaskOutput) -> Answer:
    """An agent's answer, what it took, and where all of it can be read."""
    job = found.job
    is_error = job.status.value != "completed"
    said = [found.output] if found.output.strip() else []
    if is_error:
        said.append(f"The agent did not finish: {_how(job)}")
    elif not said:
        said.append("(the agent gave no answer)")
    data = job_facts(job) | agent_data(job) | {"result": found.output, "was_truncated": found.was_truncated}
    if is_error:
        data["error_text"] = _how(job)
    return Answer("\n".join(said), data, (_took(job),), is_error=is_error)


def _remote_agent(found: TaskOutput) -> Answer:
    """The answer of an agent elsewhere; of one that gave none, what it said."""
    answer = found.job.facts.get("result")
    return _agent(found._replace(output=answer, was_truncated=False) if isinstance(answer, str) else found)


def agent_data(job: Job) -> dict[str, object]:
    """What an agent's record has beyond others', for those who ask about it."""
    data: dict[str, object] = {}
    for key in ("name", "summary"):
        if isinstance(text := job.facts.get(key), str):
            data[key] = text
    for key in ("usage", "worktree"):
        if (value := as_object(job.facts.get(key))) is not None:
            data[key] = value
    if (cost := cost_usd(job)) is not None:
        data["cost_usd"] = cost
    return data


def _took(job: Job) -> str:
    """What it took, in the words models know."""
    usage = as_object(job.facts.get("usage")) or {}
    counts = [f"{name}: {usage[name]}" for name in ("total_tokens", "tool_uses", "duration_ms") if name in usage]
    cost = cost_usd(job)
    lines = [*counts, *([] if cost is None else [f"cost_usd: {cost:.4f}"])]
    used = "\n".join(lines)
    return "\n".join(
        [f"agentId: {job.id}", f"transcript: {job.output_file}", *_worktree(job), f"<usage>{used}</usage>"]
    )


def _worktree(job: Job) -> list[str]:
    """Where its work is, if it had a place of its own and left some."""
    tree = as_object(job.facts.get("worktree"))
    if tree is None:
        return []
    if "path" not in tree:
        return ["worktree: removed, as it left no work there"]
    return [f"worktree: {tree.get('path')} (branch {tree.get('branch')}), kept: {tree.get('kept')}"]


def _workflow(found: TaskOutput) -> Answer:
    """How each step went."""
    job = found.job
    is_error = job.status.value != "completed"
    steps = [step for raw in as_list(job.facts.get("steps")) or [] if (step := as_object(raw)) is not None]
    lines = [_step(step) for step in steps]
    if is_error:
        lines.append(f"The workflow did not finish: {_how(job)}")
        lines.append(f'Workflow {{"resume_from": "{job.facts.get("run") or job.id}"}} goes on with it.')
    data = job_facts(job) | workflow_data(job) | {"steps": steps}
    return Answer("\n".join(lines) or found.output, data, is_error=is_error)


def workflow_data(job: Job) -> dict[str, object]:
    """What a workflow's record has beyond others'."""
    run = job.facts.get("run")
    return {"run": run if isinstance(run, str) else job.id}


def _step(step: dict[str, object]) -> str:
    where = f" ({step['job']})" if step.get("job") else ""
    why = f": {step['why']}" if step.get("why") else ""
    return f"{step.get('id')} [{step.get('status')}]{where}{why}"


def _how(job: Job) -> str:
    """How a job ended that did not end well."""
    end = job.end
    if end is None:
        return f"Status: {job.status.value}"
    if end.cause == "exited":
        return f"Exit code {end.exit_code}"
    if end.cause == "timeout":
        return "It was ended after reaching its time limit."
    if end.cause == "signal":
        return f"Killed by signal {end.signal}"
    if end.cause == "error" and end.error:
        return end.error
    return f"{end.cause}{': ' + end.error if end.error else ''}"
