"""Taskyard: the task engine for teams of AI agents."""
