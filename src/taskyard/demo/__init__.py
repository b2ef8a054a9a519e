"""
The demo: four worker processes drain a plan of twelve tasks, and one of them is killed on the way.

* `plan`      the tasks, what each waits for, and the small piece of real work it is
* `worker`    what a worker process does: claim, start, work, complete, look again
* `scratch`   a place of its own, gone afterwards, and an environment that leads nowhere else
* `director`  starts everyone, watches, kills one, and checks the outcome against the event log
* `stage`     what is seen: a table that redraws on a terminal, lines elsewhere
"""
