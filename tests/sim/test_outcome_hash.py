"""The outcome of every job, to the last bit, under policies that the core must carry out exactly as before.

A hash that changes means that decisions changed, or their outcome: say why in the CHANGELOG, then pin it
anew.
"""

from __future__ import annotations

import hashlib
import random

import pytest

from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure

ONE_TYPE = Cluster("one", tuple(Node(f"n{i}", "V100", 8, 32.0, 256.0) for i in range(8)))
TWO_TYPES = Cluster(
    "two",
    (
        *(Node(f"v{i}", "V100", 8, 32.0, 256.0) for i in range(4)),
        *(Node(f"k{i}", "K80", 4, 16.0, 64.0) for i in range(8)),
    ),
)
FAILURES = [Failure(3000.0 * k, f"n{k % 8}", 900.0 + 100 * k) for k in range(1, 30)]
RULES = {
    "": Rules(),
    "restart": Rules(restart_s=30.0, start_s=5.0),
    "rounds": Rules(round_s=60.0, restart_s=30.0),
    "until": Rules(until_s=50_000.0),
}

# (policy, cluster, rules, whether nodes fail) -> the hash
PINNED = {
    ("fifo", "one", "", False): "3c87f2af267966ef",
    ("easy", "one", "", False): "ea6c7389ae47783e",
    ("fifo(fill=greedy)+spread", "one", "restart", True): "6dbf5a118c27993c",
    ("sjf(fill=easy)", "one", "", False): "9e10217c839a7f22",
    ("fifo+pack(consolidate=require)", "one", "", True): "4d0464f733d0c582",
    ("srtf", "one", "", False): "bbf904ca4d13dfed",
    ("srtf", "one", "restart", True): "3e4a9f584a1ee5b0",
    ("srtf+pack(consolidate=require)", "one", "restart", False): "3f1f4a94da4a8b13",
    ("srtf", "two", "restart", False): "a8c0b548eb825794",
    ("srsf+even", "one", "restart", False): "0fa3a5d4b54271f1",
    ("srsf", "one", "rounds", True): "1ff4fe987ddb91d5",
    ("las", "one", "", False): "249fa986f4a54a32",
    ("las", "one", "restart", True): "801934d0cace9325",
    ("las", "two", "restart", False): "fb6e78fa6e165773",
    ("las(threshold_s=600:6000)", "one", "restart", False): "b49766c183a11752",
    ("tiresias", "one", "restart", True): "6a580b5cb217c701",
    ("tiresias", "one", "rounds", False): "baccb9458bd54ef6",
    ("ftf", "one", "until", False): "179e4ba1905cd84f",
    ("srtf+drf", "one", "restart", True): "db3e436f704b8357",
    ("las+tetris+greedy", "one", "", False): "5bdab536490e4a36",
}


def jobs_of(count, seed):
    """Whole seconds, so that every machine makes the same jobs, and many of them at the same moment."""
    draw = random.Random(seed)
    made, at = [], 0
    for i in range(count):
        at += draw.choice((0, 0, 5, 40, 120))
        gpus = draw.choice((1, 1, 1, 1, 2, 2, 4, 8, 16))
        more = {"min_gpus": 1, "max_gpus": 16} if draw.random() < 0.2 else {}
        if draw.random() < 0.1:
            more |= {"cpus": 2.0 * gpus, "memory_gb": 8.0 * gpus}
        status = draw.choice(("", "", "", "failed"))
        duration = draw.choice((30, 60, 600, 600, draw.randrange(1, 20_000)))
        job = Job(
            f"j{i}", float(at), gpus, duration_s=float(duration), status=status, checkpoint_s=600.0, **more
        )
        made.append(job)
    return made


def outcome_hash(result):
    """A hash over what became of every job, and what happened when and where; at one instant in any order."""
    o = result.outcomes
    columns = (o.start_s, o.finish_s, o.gpu_s, o.restarts, o.preemptions, o.fair_s, o.ideal_s)
    text = "\n".join(repr(row) for row in zip(o.job_id, *(c.tolist() for c in columns), strict=True))
    text += "\n".join(sorted(map(str, result.story)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("case", PINNED, ids=lambda case: "-".join(map(str, case)))
def test_every_job_ends_as_before(case):
    policy, cluster, rules, failing = case
    where = ONE_TYPE if cluster == "one" else TWO_TYPES
    failures = FAILURES if failing else ()
    run = Simulator(where, jobs_of(400, 7), parse_policy(policy), RULES[rules], failures)
    assert outcome_hash(run.run()) == PINNED[case]
