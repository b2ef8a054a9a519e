"""
Background jobs: work that outlives its starter, with a reliable record of how it ended.

Each job has a folder under `$TASKYARD_HOME/jobs` and one supervisor process (`supervisor`), which stays
small by importing little. `start` creates jobs, `query` reads them from any process, `control` stops and
pauses them, `exit_record` writes an end once. Ends are reported by signed notices (`notice_payload`,
`notices`, `outbox`) and by one event log (`event_log`, `events`). `output` reads what a job printed, `gc`
removes ended jobs.
"""
