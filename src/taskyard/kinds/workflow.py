"""
A workflow: `local_workflow`. Steps that run as jobs of their own, side by side where their needs allow.

What happened is written down before it counts, so that after a death anywhere another job goes on with the run:
finished steps are not run again (`taskyard.workflows.journal`).
"""

from __future__ import annotations

import os
import sys

from taskyard import config, kinds, paths
from taskyard.errors import BadValue, TaskyardError
from taskyard.kinds.checks import check_run
from taskyard.kinds.shell import Shell
from taskyard.names import check_number
from taskyard.places import folder_for_others
from taskyard.runtime import here
from taskyard.runtime.kind import Outcome, Wanted, letter_of
from taskyard.shapes import as_object, as_text
from taskyard.typed import NamedTuple
from taskyard.workflows import expressions, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from taskyard.runtime.context import JobContext
    from taskyard.runtime.kind import Spec
    from taskyard.workflows.journal import Run
    from taskyard.workflows.model import Definition, Step

#: The kind that steps with `agent` need.
_AGENT = "local_agent"


class Workflow(NamedTuple):
    """A workflow to run; its definition is what a file would hold, as plain data."""

    definition: Mapping[str, object]
    env: Mapping[str, str] = {}  #: variables for every step, over those of the definition
    cwd: str | None = None  #: where; the current folder if not given
    task_list: str | None = None  #: where steps with `tasks` put them; the project's list if not given
    tasks_dir: str | None = None  #: the folder of lists; where lists are by the settings if not given
    on_parent_exit: str | None = None  #: "kill" or "keep"
    grace: float = 3.0  #: seconds between being asked to end and being made to
    resumes: str | None = None  #: the run to go on with; a new one if not given
    timeout: float | None = None  #: seconds for this job's part of the run; the definition's if not given
    again: bool = False  #: then also with steps that failed, and what was skipped for them
    source: str | None = None  #: the file the definition was read from

    @property
    def type(self) -> str:
        """The kind, as records name it."""
        return "local_workflow"

    @property
    def letter(self) -> str:
        """What its ids begin with."""
        return "w"

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, env: Mapping[str, str] | None = None) -> Self:
        """The workflow in a file, YAML or JSON.

        Raises:
            BadWorkflow: it is none; says what, where and on which line.
            MissingExtra: it is YAML, and nothing here reads that.
        """
        file = os.path.abspath(str(os.fspath(path)))
        return cls(reading.read_file(file, has_agents=_has_agents())[1], env or {}, source=file)

    @classmethod
    def resume(
        cls,
        job_id: str,
        *,
        failed: bool = False,
        home: str | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> Self:
        """What goes on with a run, named by its id or by any job that worked on it.

        It goes on with the definition it began with, whatever became of the file since.

        Args:
            job_id: The run, or the job.
            failed: Also run again what failed, and what was skipped because of it.
            home: `$TASKYARD_HOME`, if not that of this process.
            file: Use the definition in this file from now on. Steps that are completed stay so, by their ids.

        Raises:
            BadWorkflow: the file holds none.
            JobNotFound, BadJobId: there is no such run.
            Conflict: somebody works on it, or nothing is left to do.
        """
        from taskyard.workflows.finding import unfinished

        new = cls.read(file) if file is not None else None
        changes = {} if new is None else {"definition": new.definition, "source": new.source}
        run_id, wanted = unfinished(home or paths.home(), job_id, failed=failed, changes=changes)
        return cls.from_json({**wanted, "resumes": run_id, "again": failed})

    @property
    def sha256(self) -> str:
        """What tells this definition from a changed one."""
        import hashlib
        import json

        return hashlib.sha256(json.dumps(self.definition, sort_keys=True).encode("ascii")).hexdigest()

    def has_changed(self) -> bool | None:
        """Whether the file holds another definition by now; None if there is no such file, or no workflow in it."""
        if self.source is None:
            return None
        try:
            return type(self).read(self.source).sha256 != self.sha256
        except TaskyardError:
            return None

    def wanted(self) -> Wanted:
        """What its keeper is asked for.

        Raises:
            BadWorkflow, BadValue: something in it cannot be.
        """
        workflow = self.checked()
        check_number("grace", self.grace, least=0.0, most=3600.0)
        cwd = os.path.abspath(os.path.join(here.folder(self.cwd), workflow.cwd or ""))
        check_run(cwd=cwd, timeout=self.timeout, on_parent_exit=self.on_parent_exit)
        arguments = self._replace(definition=dict(self.definition), env=dict(self.env), cwd=here.folder(self.cwd))
        if any(step.tasks for step in workflow.steps):
            arguments = arguments._replace(
                task_list=paths.list_name(self.task_list, cwd=cwd),
                tasks_dir=folder_for_others(self.tasks_dir, config.load()),
            )
        return Wanted(
            workflow.name,
            arguments=arguments._asdict(),
            cwd=cwd,
            on_parent_exit=self.on_parent_exit,
            timeout=self.timeout or workflow.timeout,
            grace=self.grace,
            is_light=True,
            facts={"steps": len(workflow.steps), **({"run": self.resumes} if self.resumes else {})},
        )

    def checked(self) -> Definition:
        """The workflow that the definition describes."""
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name + value:
                raise BadValue("env", name, "names without =, and values without NUL")
        return reading.check(self.definition, has_agents=_has_agents())[0]

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        """The record that `wanted().arguments` was made from."""
        known = {name: arguments[name] for name in cls._fields if name in arguments}
        return cls(**{**known, "definition": as_object(known.get("definition")) or {}})  # type: ignore[arg-type]  # by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Run every step that did not run before."""
        import asyncio

        from taskyard.workflows.journal import Run

        workflow = self.checked()
        run = Run(context.home, self.resumes or context.id)
        lock = await asyncio.to_thread(run.hold)
        try:
            return await _run(self, context, run, workflow)
        finally:
            lock.close()
            run.close()


async def _run(spec: Workflow, context: JobContext, run: Run, workflow: Definition) -> Outcome:
    from taskyard.runtime.async_jobs import AsyncJobs
    from taskyard.runtime.ending import read
    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.jobs import Jobs
    from taskyard.shapes import as_list
    from taskyard.workflows import plan
    from taskyard.workflows.journal import forget_old
    from taskyard.workflows.running import Running

    settings = config.load()
    if not run.jobs():
        run.note("workflow", wanted=spec._asdict())
    elif run.wanted().get("definition") != spec.definition:
        run.note("workflow", wanted=spec._replace(again=False)._asdict())
    run.note("run", job=context.id)
    if spec.again and (again := plan.to_do_again(workflow, run.states(step.id for step in workflow.steps))):
        run.note("again", steps=again)
    forget_old(context.home, settings.job_age_limit)
    record = read(JobFolder(context.home, context.id).record) or {}
    hooks = [str(file) for file in as_list(record.get("hooks")) or []]
    agent = as_text(record.get("agentId")) or None
    jobs = Jobs(context.home, agent=agent, settings=settings, hook_files=lambda _: hooks)
    env = dict(os.environ)
    scope = expressions.Scope(env, {})
    env = {**env, **{name: expressions.filled(value, scope) for name, value in workflow.env.items()}, **spec.env}
    making = _Making(spec, run, workflow, env)
    try:
        return await Running(context, run, workflow, env, AsyncJobs(jobs), making.spec).go()
    finally:
        jobs.close()


class _Making(NamedTuple):
    """From a step to its job."""

    workflow: Workflow
    run: Run
    definition: Definition
    env: Mapping[str, str]

    def spec(self, step: Step, scope: expressions.Scope) -> Spec:
        """What a step asks the runtime for, with all that is known filled in."""
        env = {**self.env, **{name: expressions.filled(value, scope) for name, value in step.env.items()}}
        scope = scope._replace(env=env)
        cwd = os.path.abspath(expressions.filled(step.cwd or "", scope) or os.getcwd())
        if not os.path.isdir(cwd):
            raise BadValue("cwd", cwd, "a folder that exists")
        if step.run is not None:
            command, values = expressions.as_variables(step.run, scope)
            inner: Spec = Shell(command)
            env.update(values)
        elif step.agent is not None:
            prompt = expressions.filled(str(step.agent["prompt"]), scope)
            inner = kinds.find(_AGENT).from_json({**step.agent, "prompt": prompt})
        else:
            inner = Shell(self._tasks(step, scope))
        return _StepJob(inner, step, f"{self.definition.name}: {step.id}", env, cwd)

    def _tasks(self, step: Step, scope: expressions.Scope) -> list[str]:
        """The command that puts tasks on the list and waits for them: a program, since only those have a whole yard."""
        import json

        from taskyard.disk import files

        place = f"{self.run.path}/{step.id}.tasks.json"
        tasks = [
            {
                "subject": " ".join(expressions.filled(wish.subject, scope).split()),
                "description": expressions.filled(wish.description, scope),
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
    """A step as a job: its kind's own, with what the step says. Its end is told to nobody but the workflow."""

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

    def wanted(self) -> Wanted:
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
    return _AGENT in kinds.known()


if TYPE_CHECKING:
    from taskyard.runtime.kind import Handler

    _conforms: type[Handler] = Workflow
