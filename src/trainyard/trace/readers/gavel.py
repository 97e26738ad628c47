"""Gavel (OSDI '20): tab-separated traces of job types with a number of steps, but no run time.

A step is one minibatch of one worker (Gavel's measured steps/s grow with the workers), so a job of any scale
has steps x batch samples. Where the zoo has the model, the job carries these samples and the zoo's speed
decides; ResNet-18 is trained on CIFAR-10, whose images are 0.56 / 1.82 of the work of the zoo's. The other
types, all of one GPU, have a run time: steps over the steps/s of a V100 in its oracle_throughputs_v2.json.
"""

from __future__ import annotations

import re
from typing import Any

from trainyard.model.zoo import zoo_profile
from trainyard.trace.readers.cells import Row, Source, headerless
from trainyard.trace.records import Collector, Trace

NAME = "gavel"
COLUMNS = (
    "job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir",
    "total_steps", "scale_factor", "priority_weight", "SLO", "arrival_time",
)  # fmt: skip
ZOO_MODELS = {
    "ResNet-18": ("resnet18", 0.56 / 1.82),
    "ResNet-50": ("resnet50", 1.0),
    "Transformer": ("transformer", 1.0),
    "LM": ("lstm", 1.0),
}
V100_STEPS_PER_S = {
    "A3C": 7.176,
    "CycleGAN": 4.426,
    "Recommendation (batch size 512)": 23.318,
    "Recommendation (batch size 1024)": 13.283,
    "Recommendation (batch size 2048)": 7.470,
    "Recommendation (batch size 4096)": 3.906,
    "Recommendation (batch size 8192)": 2.842,
}


def read(source: Source) -> Trace:
    """Read a trace of Gavel."""
    rows = Collector(source.where, NAME)
    for number, row in enumerate(headerless(source, COLUMNS, "\t")):
        duration_s, work = _work(row)
        arrival_s, gpus = row.number("arrival_time"), row.whole("scale_factor")
        weight = row.number("priority_weight", 1.0)
        rows.add(f"gavel-{number}", arrival_s, gpus, duration_s, weight=weight, **work)
    return rows.trace()


def _work(row: Row) -> tuple[float | None, dict[str, Any]]:
    """Return the run time, or the samples and the model that tell it."""
    job_type, steps = row.text("job_type"), row.number("total_steps")
    if job_type in V100_STEPS_PER_S:
        return steps / V100_STEPS_PER_S[job_type], {}
    match = re.fullmatch(r"(.+) \(batch size (\d+)\)", job_type)
    if match is None or match[1] not in ZOO_MODELS:
        raise row.error("job_type", job_type, f"a job type of Gavel ({', '.join(ZOO_MODELS)}, A3C, ...)")
    model, relative = ZOO_MODELS[match[1]]
    samples = round(steps * int(match[2]) * relative)
    return None, {"samples": max(1, samples), "model": model, "profile": zoo_profile(model)}
