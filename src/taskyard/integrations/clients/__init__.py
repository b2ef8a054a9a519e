"""Setup of other programs (Claude Code, Codex, Gemini CLI, opencode) as clients of Taskyard.

`setup` plans and applies the changes of their configuration files and undoes exactly those; `programs` lists
each client's files; `formats` edits JSON and TOML text in place. `hook_context` and `session_tasks` produce
what a hook adds to a model's context.
"""
