"""
Workflows: definition, expressions, scheduling, journal and execution.

`parse` reads a definition (`yaml_text` for YAML) into `model`, which also decides what may run next.
`expressions` evaluates `if:` and `${{ … }}`, in a language without side effects. `journal` records what
happened, so that another process can resume; `run` executes a run. The job kind is
`taskyard.jobs.kinds.workflow`.
"""
