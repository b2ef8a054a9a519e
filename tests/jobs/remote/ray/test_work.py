"""What Ray is asked for: the work as it was given, whatever Ray does to variables, or a plain refusal."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.ray_server import as_ray_sets
from taskyard.core.values import as_object
from taskyard.errors import BadValue, RemoteRefused
from taskyard.jobs.remote.backend import Work
from taskyard.jobs.remote.ray import MAX_ENV_BYTES, build_request, check_options
from taskyard.jobs.remote.remotes import Remote

REMOTE = Remote("cluster", "ray", url="http://head:8265", command="my-agent --json")

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)
TRICKY = st.lists(
    st.sampled_from(["$HOME", "${HOME}", "${NOBODY}", "$", "\\", "\\c", "\\044", "%", "'", '"', "\n", "é"])
)


def variables(asked: dict[str, object]) -> dict[str, object]:
    found = as_object((as_object(asked["runtime_env"]) or {})["env_vars"])
    assert found is not None
    return found


def test_the_request_is_what_was_set_up_and_asked_for() -> None:
    remote = REMOTE._replace(
        options={
            "poll_seconds": 2,
            "entrypoint_num_cpus": 2,
            "runtime_env": {"pip": ["x"], "env_vars": {"A": "$HOME", "B": "1"}},
        }
    )
    work = Work("r1", "Go.", metadata={"task": "7"}, env={"B": "2"})

    assert build_request(work, remote) == {
        "entrypoint": "my-agent --json",
        "submission_id": "r1",
        "metadata": {"task": "7"},
        "entrypoint_num_cpus": 2,
        "runtime_env": {"pip": ["x"], "env_vars": {"A": "$HOME", "B": "2", "TASKYARD_PROMPT": "Go."}},
    }


def test_the_command_of_the_work_comes_before_that_of_the_place() -> None:
    assert build_request(Work("r1", "Go.", "other"), REMOTE)["entrypoint"] == "other"


def test_without_a_command_it_is_refused_with_advice() -> None:
    with pytest.raises(RemoteRefused, match=r"no command is set.* \[remotes\.cluster\]"):
        build_request(Work("r1", "Go."), REMOTE._replace(command=""))


@given(TEXT | TRICKY.map("".join))
@example("${HOME} $HOME ${NOBODY} \\c \\0044\n\n")
def test_a_prompt_arrives_as_it_was_given_whatever_ray_replaces(prompt: str) -> None:
    asked = build_request(Work("r1", prompt, 'printf %s "$TASKYARD_PROMPT"'), REMOTE)
    env = {"HOME": "/elsewhere", **{name: as_ray_sets(str(value)) for name, value in variables(asked).items()}}
    done = subprocess.run(["/bin/sh", "-c", str(asked["entrypoint"])], env=env, capture_output=True, check=True)

    assert done.stdout == prompt.encode()


@pytest.mark.parametrize("prompt", ["a\0b", "half \ud800"])
def test_a_prompt_that_no_variable_can_hold_is_refused(prompt: str) -> None:
    with pytest.raises(RemoteRefused, match="TASKYARD_PROMPT has characters"):
        build_request(Work("r1", prompt), REMOTE)


def test_a_variable_without_a_proper_name_is_refused() -> None:
    with pytest.raises(RemoteRefused, match="name of a variable"):
        build_request(Work("r1", "Go.", env={"A; rm -rf /": "$"}), REMOTE)


@pytest.mark.parametrize("prompt", ["x" * MAX_ENV_BYTES, "✓" * (MAX_ENV_BYTES // 6), "$" * (MAX_ENV_BYTES // 6)])
def test_a_prompt_that_ray_could_not_pass_on_is_refused_before_it_hangs_there(prompt: str) -> None:
    with pytest.raises(RemoteRefused, match="Ray passes on 120,000"):
        build_request(Work("r1", prompt), REMOTE)
    build_request(Work("r1", prompt[: len(prompt) * 9 // 10]), REMOTE)


@pytest.mark.parametrize(
    "options",
    [
        {"entrypoint_num_cpu": 1},
        {"entrypoint_num_cpus": "1"},
        {"entrypoint_num_gpus": True},
        {"entrypoint_memory": -1},
        {"runtime_env": "x"},
        {"entrypoint_resources": [1]},
        {"runtime_env": {"env_vars": {"A": 1}}},
    ],
)
def test_a_setting_that_ray_does_not_have_is_refused_by_its_name(options: dict[str, object]) -> None:
    with pytest.raises(BadValue, match=rf"remotes\.cluster\.{next(iter(options))}"):
        check_options(REMOTE._replace(options=options))
