"""The engine `claude` with the real Claude Code on a scripted model."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import cli
from support.job_cli import job_record
from support.model_api import Call, Calls, Cut, Fail, Hang, Limit, ModelApi, Say, Usage
from support.wait import until

pytestmark = pytest.mark.client

#: Seconds for a client to start and do something, on a machine that is busy.
SOON = 40
