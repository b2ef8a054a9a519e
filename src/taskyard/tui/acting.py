"""Keys that do something to a task, a job or an agent; what is not known yet is asked for in place."""

from __future__ import annotations

from functools import partial

from taskyard.tui import acts
from taskyard.tui.detail import DetailPane
from taskyard.tui.feed import Subject
from taskyard.tui.foreground import Foreground
from taskyard.tui.keys import said
from taskyard.tui.moving import Moving
from taskyard.tui.pager import read_in_pager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.runtime.model import Job

#: Seconds in which the second press of a key that stops something counts.
STOP_WITHIN = 2.0


class Acting(Moving):
    """What can be done."""

    me: str | None = None  #: in whose name; asked for once where nobody said
    keymap: dict[str, str]
    foreground: Foreground

    # -- tasks -------------------------------------------------------------------------------

    def ask(self, what: str, then: Callable[[str], None]) -> None:
        """Ask for a line; an empty one is no answer."""
        self._before_prompt = self.place

        def given(text: str) -> None:
            self._refocus()
            if text.strip():
                then(text.strip())

        self.front.prompt.ask(what, given)

    def _to_task(self, act: Callable[[str], str]) -> None:
        task = self.task_here()
        if task is None:
            self.say_error("No task is selected.")
            return
        self.in_thread(lambda: act(task.id), self.say)

    def action_add(self) -> None:
        """Add a task."""
        self.ask("new task:", lambda subject: self.in_thread(lambda: acts.add(self.feed.yard, subject), self.say))

    def action_claim(self) -> None:
        """Claim the task; who the person is may have to be asked."""
        task = self.task_here()
        if task is None or self.me is not None:
            self._to_task(lambda task_id: acts.claim(self.feed.yard, task_id, self.me or acts.PERSON))
            return

        def named(name: str) -> None:
            self.me = name
            self.in_thread(lambda: acts.claim(self.feed.yard, task.id, name), self.say)

        self.ask("your name:", named)

    def action_start(self) -> None:
        """Work on it begins."""
        self._to_task(lambda task_id: acts.start(self.feed.yard, task_id, self.me))

    def action_done(self) -> None:
        """It is done."""
        self._to_task(lambda task_id: acts.done(self.feed.yard, task_id, self.me))

    def action_release(self) -> None:
        """Back into the pool."""
        self._to_task(lambda task_id: acts.release(self.feed.yard, task_id, self.me))

    def action_block(self) -> None:
        """Let it wait for others."""
        task = self.task_here()
        if task is None:
            self.say_error("No task is selected.")
            return
        self.ask(
            f"#{task.id} waits for:",
            lambda ids: self.in_thread(lambda: acts.block(self.feed.yard, task.id, ids), self.say),
        )

    def action_mail(self) -> None:
        """Write to whoever has the task, started the job, or is selected."""
        to = self._recipient()
        if to is None:
            self.say_error("Nobody is selected who could get mail.")
            return
        self.ask(
            f"mail to {to}:",
            lambda text: self.in_thread(lambda: acts.mail(self.feed.yard, to, text, self.me), self.say),
        )

    def _recipient(self) -> str | None:
        person, task, job = self.person_here(), self.task_here(), self.job_here()
        if person is not None:
            return person.name
        if task is not None and task.owner:
            return task.owner
        of_job = next((one.name for one in self.main.snapshot.people if job is not None and one.job == job.id), None)
        return of_job or (job.agent if job is not None else None)

    # -- jobs --------------------------------------------------------------------------------

    def action_run(self) -> None:
        """Run a command in the foreground of the view."""
        self.ask("run:", self._run)

    def _run(self, command: str) -> None:
        before = self.foreground.job
        columns = max(self.main.size.width // (2 if self.main.is_wide else 1) - 4, 20)
        window = (max(self.main.size.height - 6, 5), columns)

        def work() -> Job:
            jobs = self.feed.yard.jobs
            if before is not None:
                acts.to_background_if_alive(jobs, before)
            return acts.run(jobs, command, window)

        self.in_thread(work, self._started)

    def _started(self, job: Job) -> None:
        self.foreground.begin(job.id)
        self.set_timer(self.foreground.HINT_AFTER, self.tell_footer)
        self.show_newest()
        self.call_after_refresh(self._watch, job.id, 50)

    def _watch(self, job_id: str, patience: int) -> None:
        """Show the output of what was just started, as soon as it is known."""
        if self.main.jobs.select(job_id):
            self.main.active = "jobs"
            self.main.follow_selection()
            if not self.is_typing():
                self.open_detail()
        elif patience:
            self.set_timer(0.1, partial(self._watch, job_id, patience - 1))

    def action_to_background(self) -> None:
        """Let the foreground job go on without being watched."""
        job = self.foreground.job
        if job is None or self.foreground.key is None:
            return

        def told(text: str) -> None:
            self.foreground.end()
            self.say(text)
            self.tell_footer()

        self.in_thread(lambda: acts.to_background(self.feed.yard.jobs, job), told)

    def action_stop(self) -> None:
        """Stop a job: the first press asks, the second within two seconds does it."""
        job = self.job_here()
        if job is None or job.is_over:
            self.say_error("No running job is selected." if job is None else f"Job {job.id} is over.")
            return
        rows = self.main.jobs
        if job.id in rows.asks:
            self._withdraw(job.id)
            self.in_thread(lambda: acts.stop(self.feed.yard.jobs, job.id), self.say)
            return
        rows.asks = {job.id: f"{said(self.keymap.get('stop', 'x').split(',')[0])} again to stop"}
        rows.tick()
        self.tell_footer()
        self.set_timer(STOP_WITHIN, partial(self._withdraw, job.id))

    def _withdraw(self, job_id: str) -> None:
        if self.main.jobs.asks.pop(job_id, None) is not None:
            self.main.jobs.tick()
            self.tell_footer()

    def action_pause(self) -> None:
        """Pause a job, or let it go on."""
        job = self.job_here()
        if job is None or job.is_over:
            self.say_error("No running job is selected.")
            return
        is_paused = job.is_paused
        self.in_thread(lambda: acts.pause_or_resume(self.feed.yard.jobs, job.id, is_paused=is_paused), self.say)

    def action_dismiss(self) -> None:
        """Leave an ended job out of every view."""
        job = self.job_here()
        if job is None or not job.is_over:
            self.say_error("No ended job is selected.")
            return

        def close(said: str) -> None:
            self.say(said)
            if self.front.detail.is_read and self.front.detail.subject == Subject("job", job.id):
                self.action_step_back()

        self.in_thread(lambda: acts.dismiss(self.feed.yard.jobs, job.id), close)

    def action_everywhere(self) -> None:
        """Show the jobs of every project, or only of this one."""
        everywhere = not self.feed.is_everywhere
        self.feed.show_everywhere(everywhere)
        self.say("Jobs of every project." if everywhere else "Jobs of this project.")

    def on_detail_pane_answered(self, event: DetailPane.Answered) -> None:
        """Type into a job."""
        self.in_thread(lambda: acts.answer(self.feed.yard.jobs, event.job, event.text), self.say)

    # -- output ------------------------------------------------------------------------------

    def action_follow(self) -> None:
        """Follow the output, or stop doing so."""
        if self.place == "output":
            view = self.front.detail.output
            view.follow(not view.follows)

    def action_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        if self.place == "output":
            self.front.detail.output.toggle_wrap()

    def action_times(self) -> None:
        """Show when lines came, or not."""
        if self.place == "output":
            self.front.detail.output.toggle_times()

    def action_copy(self) -> None:
        """Copy the path of an output, or an id."""
        job, subject, person = self.job_here(), self.subject(), self.person_here()
        text = job.output if job is not None and self.place == "output" else subject.id if subject else ""
        text = person.name if person is not None else text
        if text:
            self.copy_to_clipboard(text)
            self.say(f"Copied: {text}")

    def action_pager(self) -> None:
        """Read the output with the person's own program."""
        job = self.job_here()
        if job is None:
            self.say_error("No job is selected.")
        elif problem := read_in_pager(self, job.id):
            self.say_error(problem)
