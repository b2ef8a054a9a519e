"""
The demo: four worker processes drain a plan of twelve tasks by background jobs. One job fails, one worker is killed.

* `plan`      the tasks, what each waits for, and the small piece of real work it is
* `worker`    what a worker process does: claim, start, run a job, hear of its end, complete, look again
* `job`       the work of one task, in the background
* `scratch`   a place of its own, gone afterwards, and an environment that leads nowhere else
* `director`  starts everyone, watches, kills one, and checks the outcome against the event log
* `stage`     what is seen: a table that redraws on a terminal, lines elsewhere
"""
