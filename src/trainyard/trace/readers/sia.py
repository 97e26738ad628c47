"""Workloads of Sia and Pollux: applications with a number of replicas and a batch size, but no run time.

A job's work is that of the application in Pollux (OSDI '21): training set x epochs, as in the validation logs
of its simulator. It is given in samples of a model of the zoo, whose speed then decides; `relative` is the
work of one sample of the application relative to one of that model:

    cifar10      ResNet-18 on 32 x 32 images, 0.56 GMAC against 1.82 on 224 x 224
    yolov3       416 x 416 images, 65.9 GFLOP (YOLOv3) against ResNet-50's 8.2; not in the zoo
    bert, deepspeech2, imagenet, ncf   the model of the zoo itself

The jobs are elastic, from one GPU to the 64 of the cluster that the workloads were made for.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.errors import did_you_mean
from trainyard.model.zoo import zoo_profile
from trainyard.trace.readers.cells import Row, Source, table
from trainyard.trace.records import Collector, Trace

NAME = "sia"
COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
MAX_GPUS = 64


@dataclass(frozen=True, slots=True)
class Application:
    """What an application trains, and on how much."""

    model: str
    dataset: int
    epochs: int
    relative: float = 1.0

    @property
    def samples(self) -> float:
        """Total work in samples of the model of the zoo."""
        return round(self.dataset * self.epochs * self.relative)


APPLICATIONS = {
    "cifar10": Application("resnet18", 50_000, 100, 0.56 / 1.82),
    "deepspeech2": Application("deepspeech2", 7_134, 80),
    "bert": Application("bert-base", 88_641, 2),
    "yolov3": Application("resnet50", 16_551, 50, 65.9 / 8.2),
    "imagenet": Application("resnet50", 1_281_167, 90),
    "ncf": Application("ncf", 4_970_845, 10),
}


def read(source: Source) -> Trace:
    """Read a workload of Sia or Pollux."""
    rows = Collector(source.where, NAME)
    for row in table(source, COLUMNS):
        work, gpus = _application(row), row.whole("num_replicas")
        known = {"samples": work.samples, "model": work.model, "profile": zoo_profile(work.model)}
        size = {"min_gpus": 1, "max_gpus": max(MAX_GPUS, gpus)}
        rows.add(row.text("name"), row.number("time"), gpus, None, **known, **size)
    return rows.trace()


def _application(row: Row) -> Application:
    name = row.text("application")
    if name not in APPLICATIONS:
        raise row.error("application", name, f"an application of Sia{did_you_mean(name, APPLICATIONS)}")
    return APPLICATIONS[name]
