"""
How programs of other people get to use Taskyard: what goes into their configuration, and how it gets out again.

    claude_code, codex, gemini     one client each: its files, and what goes into them
    starting                       the command that starts us, and what it must have in its environment
    json_text, toml_text           text in, text out: a few places changed, everything else as it was
    json_config, toml_config       our parts put into such a text, and taken out again
    config_file                    somebody's file on disk: read, kept, written whole
    records                        what was ours to begin with, so that exactly that is taken back
    planning                       all of it together: what would change, and then the change
    context, open_tasks            what a hook adds to a model's context
"""
