"""
The parts of a workflow: what it says, what may run next, what has happened.

    model         a workflow and its steps, as data
    reading       from what people write to that, refused with the place if it cannot be
    yaml_text     YAML as plain data, safely, with its lines
    expressions   `if:` and `${{ … }}`: a language too small to do harm
    plan          what may run next: pure
    journal       what happened, on disk, so that another process can go on
    running       a run: steps become jobs, as the plan allows
    graph         a picture of it

The kind of job that is made of them is `taskyard.kinds.workflow`.
"""
