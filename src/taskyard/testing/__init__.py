"""
Executable contracts: run one on your own implementation; it passes, or names the broken guarantee.

    from taskyard.testing import check_task_store

        def test_my_task_store():
        check_task_store(MyStore)

    from taskyard.testing import check_mail

        def test_my_mail():
            check_mail(lambda: partial(MyMail, new_store()), silence=2)

    from taskyard.testing import check_job_handler

        def test_my_job_kind():
        check_job_handler(quick=lambda: Mine(…), failing=lambda: Mine(…), endless=lambda: Mine(…))

    from taskyard.testing import check_remote_backend

        def test_my_remote_backend():
        check_remote_backend(lambda: Mine(remote, token), talkative=…, failing=…, endless=…)

Nothing else in Taskyard imports this package, except the registry of remote backends (`fake_remote`).
"""

from __future__ import annotations

from taskyard.testing.job_handler import check_job_handler
from taskyard.testing.mail import check_mail
from taskyard.testing.remote_backend import check_remote_backend
from taskyard.testing.task_store import check_task_store

__all__ = ["check_job_handler", "check_mail", "check_remote_backend", "check_task_store"]
