"""
An agent for those who ask from outside: a program of the engine `command` that does what its prompt says, line by line.

`/wait 0.1`, `/ask Which?` (and says the answer), `/tool Edit secret`, `/fail why`, `/forever`, `/count 100 0.01`,
`/env NAME`, `/usage 900` (tokens), `/spawn` (a child that outlives it if nobody ends it); any other line is said.
"""

import json
import os
import subprocess
import sys
import time


def event(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


for line in sys.argv[1].splitlines():
    verb, _, rest = line.partition(" ")
    if verb == "/wait":
        time.sleep(float(rest))
    elif verb == "/ask":
        event(type="question", text=rest)
        print("told:", sys.stdin.readline().rstrip("\n"), flush=True)
    elif verb == "/tool":
        name, _, given = rest.partition(" ")
        event(type="tool", name=name, input={"text": given})
    elif verb == "/usage":
        event(type="usage", input_tokens=int(rest), output_tokens=1)
    elif verb == "/fail":
        event(type="result", error=rest)
        sys.exit(1)
    elif verb == "/forever":
        while True:
            time.sleep(60)
    elif verb == "/count":
        most, _, pause = rest.partition(" ")
        for number in range(1, int(most) + 1):
            print(number, flush=True)
            time.sleep(float(pause or 0))
    elif verb == "/env":
        print(os.environ.get(rest, "not there"), flush=True)
    elif verb == "/spawn":
        print(subprocess.Popen(["sleep", "300"], start_new_session=True).pid, flush=True)
    else:
        print(line, flush=True)
