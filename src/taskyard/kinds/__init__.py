"""The kinds of jobs: what each is asked for, and what it asks of a keeper. One file each."""
