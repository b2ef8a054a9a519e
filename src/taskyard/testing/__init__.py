"""
Executable contracts. Point one at your own implementation: it passes, or it says which promise it breaks.

    from taskyard.testing import check_task_store

    def test_my_store_is_a_store():
        check_task_store(MyStore)

    from taskyard.testing import check_mail

    def test_my_post_office_is_one():
        check_mail(lambda: partial(MyPost, new_place()), silence=2)

    from taskyard.testing import check_job_handler

    def test_my_kind_is_a_kind():
        check_job_handler(quick=lambda: Mine(…), failing=lambda: Mine(…), endless=lambda: Mine(…))

    from taskyard.testing import check_remote_backend

    def test_my_place_runs_agents():
        check_remote_backend(lambda: Mine(remote, token), talkative=…, failing=…, endless=…)

Nothing in Taskyard imports this package.
"""

from __future__ import annotations

from taskyard.testing.job_handler import check_job_handler
from taskyard.testing.mail import check_mail
from taskyard.testing.remote_backend import check_remote_backend
from taskyard.testing.task_store import check_task_store

__all__ = ["check_job_handler", "check_mail", "check_remote_backend", "check_task_store"]
