"""A job that counts: it writes down every step, saves now and then, and says so.

    python counting_job.py STEPS SAVE_EVERY STEP_S

It is what the tests of the live controller run: from its history one can tell whether anything was lost or
done twice. Only rank 0 writes. It uses nothing of Trainyard.
"""

import fcntl
import json
import os
import signal
import sys
import time

steps, every, step_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
place, attempt = os.environ["TRAINYARD_CHECKPOINT_DIR"], os.environ["TRAINYARD_ATTEMPT"]
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))


def replace(path, content):
    with open(f"{path}.{attempt}", "w") as file:
        file.write(content)
    os.rename(f"{path}.{attempt}", path)


def say(text):
    with open(f"{place}/history", "a") as file:
        file.write(f"{attempt} {text}\n")


def report(done, saved):
    told = {"samples_done": done, "samples_total": steps, "samples_saved": saved, "finished": done == steps}
    replace(os.environ["TRAINYARD_PROGRESS"], json.dumps(told))


if os.environ["RANK"] != "0":
    while not asked and not os.path.exists(f"{place}/done"):
        time.sleep(step_s)
    sys.exit(75 if asked else 0)

alone = open(f"{place}/alone", "a")  # noqa: SIM115 - it is held to the end
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    say("TWICE")
    sys.exit(1)
saved = 0
if os.path.exists(f"{place}/saved"):
    with open(f"{place}/saved") as file:
        saved = int(file.read())
done = saved
say(f"from {done}")
report(done, saved)
while done < steps and not asked:
    time.sleep(step_s)
    done += 1
    say(f"step {done}")
    if done % every == 0:
        replace(f"{place}/saved", str(done))
        saved = done
    report(done, saved)
if asked and done < steps:
    replace(f"{place}/saved", str(done))
    say(f"saved {done}")
    report(done, done)
    sys.exit(75)
replace(f"{place}/saved", str(done))
replace(f"{place}/done", "")
say(f"end {done}")
report(done, done)
