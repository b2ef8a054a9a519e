"""
The job kind `local_workflow`: run steps as jobs, in parallel where their dependencies allow.

Every change is journaled before it takes effect (`taskyard.jobs.workflow.journal`), so that after a crash of
any process another job can resume the run: completed steps are not run again.
"""

from __future__ import annotations

import os
import sys

from taskyard import config
from taskyard.core.values import NamedTuple, as_object, as_text, check_number
from taskyard.errors import BadValue, TaskyardError
from taskyard.jobs import environment, kinds
from taskyard.jobs.kind import LaunchSpec, Outcome, check_run, letter_of
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.workflow import expressions, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from taskyard.jobs.context import JobContext
    from taskyard.jobs.kind import Spec
    from taskyard.jobs.workflow.journal import Run
    from taskyard.jobs.workflow.model import Definition, Step

#: Job kind required by steps with `agent`.
_AGENT_KIND = "local_agent"


class Workflow(NamedTuple):
    """A workflow to run; its definition is the content of a file, as plain data."""

    definition: Mapping[str, object]
    env: Mapping[str, str] = {}  #: variables for every step; they override those of the definition
    cwd: str | None = None  #: working directory; the current one if not given
    task_list: str | None = None  #: list for the tasks of steps with `tasks`; the project's list if not given
    tasks_dir: str | None = None  #: directory of the lists; as configured if not given
    on_parent_exit: str | None = None  #: "kill" or "keep"
    grace: float = 3.0  #: seconds between SIGTERM and SIGKILL
    resumes: str | None = None  #: the run to resume; a new one if not given
    timeout: float | None = None  #: seconds for this job's part of the run; the definition's if not given
    again: bool = False  #: when resuming, also retry failed steps, and those skipped because of them
    source: str | None = None  #: the file the definition was read from

    @property
    def type(self) -> str:
        """The kind's name in job records."""
        return "local_workflow"

    @property
    def letter(self) -> str:
        """Prefix of its job ids."""
        return "w"

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, env: Mapping[str, str] | None = None) -> Self:
        """Read a workflow from a YAML or JSON file.

        Raises:
            BadWorkflow: The file is not a valid workflow; states what, where and on which line.
            MissingExtra: It is YAML, and no YAML package is installed.
        """
        file = os.path.abspath(str(os.fspath(path)))
        return cls(parse.read_file(file, has_agents=_has_agents())[1], env or {}, source=file)

    @classmethod
    def resume(
        cls,
        job_id: str,
        *,
        failed: bool = False,
        home: str | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Return the spec that resumes a run, named by its id or by any job that worked on it.

        It uses the definition the run was started with, even if the file has changed since.

        Args:
            job_id: The run, or the job.
            failed: Also retry failed steps, and those skipped because of them.
            home: `$TASKYARD_HOME`, if not that of this process.
            file: Use the definition in this file from now on. Completed steps stay completed, by their ids.

        Raises:
            BadWorkflow: The file is not a valid workflow.
            JobNotFound, BadJobId: There is no such run.
            Conflict: Another job works on it, or nothing is left to do.
        """
        from taskyard.jobs.workflow.journal import resumable_run

        new = cls.read(file) if file is not None else None
        changes = {} if new is None else {"definition": new.definition, "source": new.source}
        run_id, wanted = resumable_run(home or config.home(), job_id, failed=failed, changes=changes)
        return cls.from_json({**wanted, "resumes": run_id, "again": failed})

    @property
    def sha256(self) -> str:
        """Digest of the definition, to detect a changed one."""
        import hashlib
        import json

        return hashlib.sha256(json.dumps(self.definition, sort_keys=True).encode("ascii")).hexdigest()

    def has_changed(self) -> bool | None:
        """Return whether the file now has another definition; None if it is missing or not a workflow."""
        if self.source is None:
            return None
        try:
            return type(self).read(self.source).sha256 != self.sha256
        except TaskyardError:
            return None

    def wanted(self) -> LaunchSpec:
        """Return the launch spec for the supervisor.

        Raises:
            BadWorkflow, BadValue: A field is invalid.
        """
        workflow = self.checked()
        check_number("grace", self.grace, least=0.0, most=3600.0)
        cwd = os.path.abspath(os.path.join(environment.resolve_cwd(self.cwd), workflow.cwd or ""))
        check_run(cwd=cwd, timeout=self.timeout, on_parent_exit=self.on_parent_exit)
        arguments = self._replace(
            definition=dict(self.definition), env=dict(self.env), cwd=environment.resolve_cwd(self.cwd)
        )
        if any(step.tasks for step in workflow.steps):
            arguments = arguments._replace(
                task_list=config.list_name(self.task_list, cwd=cwd),
                tasks_dir=config.child_tasks_dir(self.tasks_dir, config.load_settings()),
            )
        return LaunchSpec(
            workflow.name,
            arguments=arguments._asdict(),
            cwd=cwd,
            on_parent_exit=self.on_parent_exit,
            timeout=self.timeout or workflow.timeout,
            grace=self.grace,
            needs_no_slot=True,
            facts={"steps": len(workflow.steps), **({"run": self.resumes} if self.resumes else {})},
        )

    def checked(self) -> Definition:
        """Validate the definition and return it as a model."""
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name + value:
                raise BadValue("env", name, "names without =, and values without NUL")
        return parse.parse_definition(self.definition, has_agents=_has_agents())[0]

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        """Restore the record from `wanted().arguments`."""
        known = {name: arguments[name] for name in cls._fields if name in arguments}
        return cls(**{**known, "definition": as_object(known.get("definition")) or {}})  # type: ignore[arg-type]  # by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Run every step that has not run before."""
        import asyncio

        from taskyard.jobs.workflow.journal import Run

        workflow = self.checked()
        run = Run(context.home, self.resumes or context.id)
        lock = await asyncio.to_thread(run.hold)
        try:
            return await _run_workflow(self, context, run, workflow)
        finally:
            lock.close()
            run.close()


async def _run_workflow(spec: Workflow, context: JobContext, run: Run, workflow: Definition) -> Outcome:
    from taskyard.core.values import as_list
    from taskyard.jobs.async_jobs import AsyncJobs
    from taskyard.jobs.exit_record import read_json
    from taskyard.jobs.job_dir import JobPaths
    from taskyard.jobs.jobs import Jobs
    from taskyard.jobs.workflow import model
    from taskyard.jobs.workflow.journal import remove_old_runs
    from taskyard.jobs.workflow.run import WorkflowRunner

    settings = config.load_settings()
    if not run.jobs():
        run.note("workflow", wanted=spec._asdict())
    elif run.wanted().get("definition") != spec.definition:
        run.note("workflow", wanted=spec._replace(again=False)._asdict())
    run.note("run", job=context.id)
    if spec.again and (again := model.steps_to_retry(workflow, run.states(step.id for step in workflow.steps))):
        run.note("again", steps=again)
    remove_old_runs(context.home, settings.job_age_limit)
    record = read_json(JobPaths(context.home, context.id).record) or {}
    hooks = [str(file) for file in as_list(record.get("hooks")) or []]
    agent = as_text(record.get("agentId")) or None
    jobs = Jobs(context.home, agent=agent, settings=settings, hook_files=lambda _: hooks)
    env = dict(os.environ)
    scope = expressions.Scope(env, {})
    env = {**env, **{name: expressions.interpolate(value, scope) for name, value in workflow.env.items()}, **spec.env}
    making = _StepSpecs(spec, run, workflow, env)
    try:
        return await WorkflowRunner(context, run, workflow, env, AsyncJobs(jobs), making.spec).go()
    finally:
        jobs.close()


class _StepSpecs(NamedTuple):
    """Builds the job spec of each step."""

    workflow: Workflow
    run: Run
    definition: Definition
    env: Mapping[str, str]

    def spec(self, step: Step, scope: expressions.Scope) -> Spec:
        """Return the job spec of a step, with all expressions interpolated."""
        env = {**self.env, **{name: expressions.interpolate(value, scope) for name, value in step.env.items()}}
        scope = scope._replace(env=env)
        cwd = os.path.abspath(expressions.interpolate(step.cwd or "", scope) or os.getcwd())
        if not os.path.isdir(cwd):
            raise BadValue("cwd", cwd, "a folder that exists")
        if step.run is not None:
            command, values = expressions.as_variables(step.run, scope)
            inner: Spec = Shell(command)
            env.update(values)
        elif step.agent is not None:
            prompt = expressions.interpolate(str(step.agent["prompt"]), scope)
            inner = kinds.find(_AGENT_KIND).from_json({**step.agent, "prompt": prompt})
        else:
            inner = Shell(self._tasks(step, scope))
        return _StepJob(inner, step, f"{self.definition.name}: {step.id}", env, cwd)

    def _tasks(self, step: Step, scope: expressions.Scope) -> list[str]:
        """Return the command that adds the tasks and waits for them; a program, because only that has a full `Yard`."""
        import json

        from taskyard.core import files

        place = f"{self.run.path}/{step.id}.tasks.json"
        tasks = [
            {
                "subject": " ".join(expressions.interpolate(wish.subject, scope).split()),
                "description": expressions.interpolate(wish.description, scope),
                "owner": wish.owner,
                "needs": list(wish.needs),
            }
            for wish in step.tasks
        ]
        files.replace(place, json.dumps({"key": f"{self.run.id}/{step.id}", "tasks": tasks}).encode())
        folder = self.workflow.tasks_dir
        where = ["--list", self.workflow.task_list or "", *(["--tasks-dir", folder] if folder else [])]
        return [sys.executable, "-P", "-m", "taskyard", "__workflow_tasks", *where, place]


class _StepJob(NamedTuple):
    """A step as a job: the spec of its kind with the step's options. Only the workflow is notified of its end."""

    inner: Spec
    step: Step
    description: str
    env: Mapping[str, str]
    cwd: str

    @property
    def type(self) -> str:
        return self.inner.type

    @property
    def letter(self) -> str:
        return letter_of(self.inner)

    def wanted(self) -> LaunchSpec:
        return self.inner.wanted()._replace(
            description=self.description,
            env=self.env,
            cwd=self.cwd,
            timeout=self.step.timeout,
            retries=self.step.retries,
            retry_delay=self.step.retry_delay,
            on_parent_exit="kill",
            is_silent=True,
        )


def _has_agents() -> bool:
    return _AGENT_KIND in kinds.registry()


if TYPE_CHECKING:
    from taskyard.jobs.kind import Handler

    _conforms: type[Handler] = Workflow
