"""
The doctor of a list, with all it needs to know: `taskyard doctor` in Python.

    from taskyard.checkup import doctor

    for finding in doctor(list="release").examine():
        print(finding.name, finding.file, finding.why)
"""

from __future__ import annotations

import os

from taskyard import config, paths
from taskyard.errors import BadValue, Damaged, StorageError
from taskyard.places import chosen_store, files_of, folder_of, store_of
from taskyard.surroundings import project_here
from taskyard.tasklist.doctor import Doctor, Finding, Repair
from taskyard.tasklist.doctor.check_claude import check_claude

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.checkup.shared import SharedDoctor


def doctor(
    *,
    tasks_dir: str | os.PathLike[str] | None = None,
    list: str | None = None,
    agent: str | None = None,
    foreign_writers: bool | None = None,
) -> Doctor | SharedDoctor:
    """The doctor of a list; the arguments are those of `taskyard.open`. It works where `open` refuses."""
    settings, wrong = _settings()

    def beyond() -> Iterator[Finding]:
        from taskyard.hooks import load

        if wrong is not None:
            yield wrong
        else:
            yield from _sinks()
        yield from check_claude(paths.claude_folder())
        yield from _jobs()
        yield from _supervisors()
        for problem in load(project_here()).problems:
            yield Finding("hooks", problem.file, problem.text, "mend it; the other hooks are in force")

    folder, name = folder_of(tasks_dir), paths.list_name(list)
    chosen = chosen_store(None, has_folder=tasks_dir is not None, settings=settings)
    if isinstance(chosen, str) and chosen not in ("files", "memory:"):
        from taskyard.checkup.shared import SharedDoctor

        store = store_of(chosen, folder, name, settings, None)
        return SharedDoctor(chosen, store, settings, paths.home(), by=agent, beyond=beyond, treatments=_TREATMENTS)
    files = files_of(folder, name, settings, foreign_writers)
    return Doctor(files, paths.home(), by=agent, beyond=beyond, treatments=_TREATMENTS)


def _jobs() -> Iterator[Finding]:
    """Jobs that `taskyard ps` cannot show, or shows without saying what they are."""
    from taskyard.runtime.looking import damage

    try:
        for error in damage(paths.home()):
            file = error.file if isinstance(error, Damaged) else error.path
            yield Finding(
                "damaged-job", file, _sentence(error.why), "read what is beside it, then remove the job's folder"
            )
    except StorageError as error:  # the folder of all of them
        yield Finding(
            "damaged-job", error.path, _sentence(error.why), "put the folder back, or remove what is in its place"
        )


def _supervisors() -> Iterator[Finding]:
    """Jobs whose limits nobody enforces."""
    from taskyard.runtime.looking import stopped_supervisors

    try:
        for job_id, pid in stopped_supervisors(paths.home()):
            why = f"Process {pid} is stopped by a signal: no time limit or output cap of the job is enforced."
            yield Finding("stopped-supervisor", f"{paths.home()}/jobs/{job_id}", why, "send it SIGCONT")
    except StorageError:
        return  # the folder of all jobs: `damaged-job` says so


def _resume(finding: Finding) -> Repair | None:
    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.liveness import resume_supervisor

    folder = JobFolder(paths.home(), os.path.basename(finding.file))
    return Repair(finding.name, finding.file, "sent SIGCONT") if resume_supervisor(folder) else None


_TREATMENTS = {"stopped-supervisor": _resume}


def _sentence(why: str) -> str:
    return f"{why[:1].upper()}{why[1:]}."


def _sinks() -> Iterator[Finding]:
    """What keeps every sink from telling anything."""
    from taskyard.runtime.sinks import load_sinks

    try:
        load_sinks()
    except (BadValue, Damaged) as error:
        file = os.path.join(config.config_folder(os.environ), "config.toml")
        yield Finding("settings", file, str(error), "mend it, or TASKYARD_SINKS_…; until then no sink is told")


def _settings() -> tuple[config.Settings, Finding | None]:
    """The settings in force; the defaults, and what is wrong, where they cannot be read."""
    try:
        return config.load(), None
    except (BadValue, Damaged) as error:
        file = os.path.join(config.config_folder(os.environ), "config.toml")
        return config.Settings(), Finding("settings", file, str(error), "mend it; until then nothing else works")
