"""The zoo: profiles of well-known models, each number with its source.

Every model of the zoo trains with an all-reduce that starts as soon as gradients exist (overlap "wait-free"),
which is what Horovod and DistributedDataParallel do. Times are published measurements where there are any;
otherwise they are derived, and the source says how. Three ratios carry a V100 time over to another GPU:

    full precision   published ResNet-50 training throughput, 32-bit: V100 367, A100 938 (TF32), P100 219,
                     K80 51.9 images/s; T4 by its 32-bit inference, 426 to the V100's 1229
    mixed precision  the same network with 16-bit arithmetic: V100 1200, A100 2470; P100 and K80 have no
                     tensor cores and stay at 219 and 51.9; T4 by its mixed inference, 1190 to 3249
    memory-bound     memory bandwidth by data sheet: V100 900, A100 1555, P100 732, T4 320, K80 240 GB/s

The sensitivity tables are those of Synergy, measured on V100 servers: at the full demand they give the speed
of the V100 itself, so they cap a faster GPU there too. Its language models are insensitive to CPUs and memory
(the matrix is 1.0 everywhere) and so have no input part at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trainyard.errors import InputError, did_you_mean
from trainyard.model.profile import Compute, Demand, Input, Profile, Scaling, Sync, Tables

Field = Literal["vision", "language", "speech", "recommendation"]


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """A profile, the field it is from, and the source of every number by its path in the profile."""

    profile: Profile
    field: Field
    sources: Mapping[str, str]


def zoo() -> Mapping[str, ZooEntry]:
    """Return all entries by name: each has its `profile` and the source of every number in `sources`."""
    return ZOO


def zoo_profile(name: str) -> Profile:
    """Look up a profile by name."""
    if name not in ZOO:
        raise InputError(f"no model '{name}' in the zoo{did_you_mean(name, ZOO)}")
    return ZOO[name].profile


@dataclass(frozen=True, slots=True)
class _Ratio:
    """Speed of each GPU type relative to a V100, and where that is from."""

    speeds: Mapping[str, float]
    source: str


_NVIDIA = "NVIDIA/DeepLearningExamples"
_TF_BENCHMARKS = (
    "TensorFlow benchmarks (docs_src/performance/benchmarks.md), May 2017, one GPU, synthetic data"
)
_RESNET50 = f"{_NVIDIA} PyTorch ResNet-50 v1.5 README (V100, A100, T4) and {_TF_BENCHMARKS} (P100, K80)"
_FULL = _Ratio(
    {"P100": 219 / 367, "K80": 51.9 / 367, "T4": 426 / 1229, "A100": 938 / 367},
    f"V100 time / ratio of 32-bit ResNet-50 throughput, {_RESNET50}",
)
_MIXED = _Ratio(
    {"P100": 219 / 1200, "K80": 51.9 / 1200, "T4": 1190 / 3249, "A100": 2470 / 1200},
    f"V100 time / ratio of mixed-precision ResNet-50 throughput, {_RESNET50}",
)
_MEMORY = _Ratio(
    {"P100": 732 / 900, "K80": 240 / 900, "T4": 320 / 900, "A100": 1555 / 900},
    "V100 time / ratio of memory bandwidth, NVIDIA data sheets (V100 900, P100 732, K80 240 per GPU, T4 320, "
    "A100 40GB 1555 GB/s)",
)


def _times(v100_s: float, source: str, ratio: _Ratio) -> tuple[dict[str, float], dict[str, str]]:
    """Seconds per sample on every type from those on a V100, and their sources."""
    seconds = {"V100": v100_s} | {gpu: v100_s / speed for gpu, speed in ratio.speeds.items()}
    return seconds, {"V100": source} | dict.fromkeys(ratio.speeds, ratio.source)


def _entry(
    name: str,
    field: Field,
    batch: tuple[int, str],
    gradient_mb: tuple[float, str],
    times: tuple[Mapping[str, float], Mapping[str, str]],
    scaling: Scaling = "weak",
    known: tuple[Input | None, Tables | None, Mapping[str, str]] = (None, None, {}),
    worker: Demand | None = None,
) -> tuple[str, ZooEntry]:
    feed, tables, fed = known
    profile = Profile(
        name=name,
        batch=batch[0],
        scaling=scaling,
        compute=Compute(per_sample_s=dict(times[0])),
        sync=Sync(gradient_mb=gradient_mb[0], overlap="wait-free"),
        input=feed,
        tables=tables,
        worker=worker,
    )
    timed = {f"compute.per_sample_s.{gpu}": source for gpu, source in times[1].items()}
    return name, ZooEntry(
        profile, field, {"batch": batch[1], "sync.gradient_mb": gradient_mb[1], **timed, **fed}
    )


_SYNERGY = "Synergy, OSDI 2022, public artifact (msr-fiddle/synergy), 8-V100 server with 24 CPUs and 500 GB"
_CPUS = (1, 2, 3, 4, 5, 6, 9, 12, 24)
_MEMORY_GB = (20.83, 62.5, 125.0, 187.5, 250.0)
_TOO_LITTLE_MEMORY = 0.1


@dataclass(frozen=True, slots=True)
class _Synergy:
    """What Synergy says of a model: seconds of an iteration at (3 CPUs, 62.5 GB) and speeds relative to that.

    `by_cpu` has one speed per entry of `_CPUS`, for any memory from 62.5 GB; `by_memory` names the CPU counts
    whose speed also depends on memory, with one speed per entry of `_MEMORY_GB` from 62.5 GB on.
    """

    iteration_s: float
    batch: int
    by_cpu: tuple[float, ...]
    by_memory: Mapping[int, tuple[float, ...]]

    @property
    def best(self) -> float:
        """Largest relative speed: that of the GPU when nothing holds it up."""
        return max(self.by_cpu + sum(self.by_memory.values(), ()))

    def rows(self) -> tuple[tuple[float, float, float], ...]:
        """Return the matrix as (CPUs, GB, samples/s) of one GPU."""
        table = []
        for cpus, plain in zip(_CPUS, self.by_cpu, strict=True):
            speeds = (_TOO_LITTLE_MEMORY, *self.by_memory.get(cpus, (plain,) * (len(_MEMORY_GB) - 1)))
            table += [
                (float(cpus), gb, speed * self.batch / self.iteration_s)
                for gb, speed in zip(_MEMORY_GB, speeds, strict=True)
            ]
        return tuple(table)


def _sensitive(
    name: str, field: Field, facts: _Synergy, gradient_mb: tuple[float, str], ratio: _Ratio
) -> tuple[str, ZooEntry]:
    """Make the entry of a model whose speed depends on CPUs and memory."""
    per_sample = facts.iteration_s / facts.best / facts.batch
    source = f"iteration time at the proportional share / speedup at full demand / batch, {_SYNERGY}"
    table = {"tables.cpu_memory": f"throughput matrix x batch / iteration time, {_SYNERGY}"}
    known = (None, Tables(cpu_memory=facts.rows()), table)
    return _entry(
        name, field, (facts.batch, _SYNERGY), gradient_mb, _times(per_sample, source, ratio), known=known
    )


def _insensitive(
    name: str, iteration_s: float, batch: int, gradient_mb: tuple[float, str], ratio: _Ratio
) -> tuple[str, ZooEntry]:
    """Make the entry of a language model that Synergy found insensitive to CPUs and memory."""
    source = f"iteration time / batch, {_SYNERGY}; its matrix is 1.0 everywhere, so there is no input part"
    needs = f"ideal demand per GPU, {_SYNERGY}"
    return _entry(
        name,
        "language",
        (batch, _SYNERGY),
        gradient_mb,
        _times(iteration_s / batch, source, ratio),
        known=(None, None, {"worker.cpus": needs, "worker.memory_gb": needs}),
        worker=Demand(1.0, 20.0),
    )


def _fp32(parameters: float, source: str) -> tuple[float, str]:
    """Megabytes of 32-bit gradients."""
    return parameters * 4 / 1e6, f"{parameters / 1e6:.4g} million parameters x 4 bytes; {source}"


_TORCHVISION = "parameter count of the torchvision model"
_SMALL_NET = (0.30, 0.66, 1.0, 1.25, 1.53, 1.75, 2.0, 2.0, 2.0)
_IMAGENET_INPUT = (
    Input(cpu_s_per_sample=3 * 0.6 / 512, sample_kb=140e6 / 1_281_167, dataset_gb=140.0),
    None,
    {
        "input.cpu_s_per_sample": f"AlexNet is input-bound at 3 CPUs: 3 x 0.6 s / 512 samples, {_SYNERGY}",
        "input.sample_kb": "140 GB / 1,281,167 images of ImageNet-1k",
        "input.dataset_gb": "size of the ImageNet-1k training set",
    },
)


def _benchmarked(name: str, p100: float, k80: float, gradient_mb: tuple[float, str]) -> tuple[str, ZooEntry]:
    """Make the entry of an image model whose P100 and K80 throughput is published."""
    seconds, sources = _times(_FULL.speeds["P100"] / p100, f"P100 throughput / ratio; {_FULL.source}", _FULL)
    seconds |= {"P100": 1 / p100, "K80": 1 / k80}
    sources |= dict.fromkeys(("P100", "K80"), f"1 / throughput, {_TF_BENCHMARKS}")
    batch = (64, f"per GPU, P100 runs, {_TF_BENCHMARKS}")
    return _entry(name, "vision", batch, gradient_mb, (seconds, sources), known=_IMAGENET_INPUT)


_BERT_LARGE_PER_S = 26.04
_BERT_SOURCE = f"1 / 26.04 sequences/s, V100 32 GB, FP16, batch 14, {_NVIDIA} PyTorch BERT README, March 2019"
_BERT_PAPER = "Devlin et al. 2019 (BERT)"
_GPT2_PARAMETERS = 124_439_808
_LLAMA_PARAMETERS = 6.74e9
_LLAMA_A100_S = 8 * _LLAMA_PARAMETERS * 2048 / (0.44 * 312e12)


def _ncf_times() -> tuple[dict[str, float], dict[str, str]]:
    """Seconds per sample of NCF: V100 and A100 published, the rest by memory bandwidth."""
    published = f"1 / throughput of one GPU, {_NVIDIA} PyTorch NCF README, June 2021"
    seconds, sources = _times(1 / 10.42e6, f"{published}, FP32", _MEMORY)
    return seconds | {"A100": 1 / 22.59e6}, sources | {"A100": f"{published}, TF32"}


def _llama_times() -> tuple[dict[str, float], dict[str, str]]:
    """Seconds per sequence of a 7-billion-parameter model: too large for the older GPUs' memory."""
    source = (
        "8 x parameters x 2048 tokens / achieved FLOP/s (with recomputation), 44% of an A100's 312 TFLOP/s: "
        "Narayanan et al. 2021 (Megatron-LM), smallest models of Table 1"
    )
    v100 = _LLAMA_A100_S * _MIXED.speeds["A100"]
    return {"A100": _LLAMA_A100_S, "V100": v100}, {
        "A100": source,
        "V100": f"A100 time x ratio of mixed-precision ResNet-50 throughput, {_RESNET50}",
    }


ZOO: dict[str, ZooEntry] = dict(
    [
        _sensitive(
            "alexnet",
            "vision",
            _Synergy(0.600, 512, _SMALL_NET, dict.fromkeys((12, 24), (2.0, 2.94, 2.94, 2.94))),
            _fp32(61_100_840, _TORCHVISION),
            _FULL,
        ),
        _sensitive(
            "resnet18",
            "vision",
            _Synergy(0.640, 512, (0.37, 0.72, 1.0, 1.3, 1.53, 1.75, 2.4, 2.4, 2.4), {}),
            _fp32(11_689_512, _TORCHVISION),
            _FULL,
        ),
        _sensitive(
            "resnet50",
            "vision",
            _Synergy(0.780, 512, (0.40, 0.74, 1.0, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15), {}),
            _fp32(25_557_032, _TORCHVISION),
            _FULL,
        ),
        _sensitive(
            "mobilenet",
            "vision",
            _Synergy(0.710, 512, (0.37, 0.72, 1.0, 1.3, 1.49, 1.55, 1.55, 1.55, 1.55), {}),
            _fp32(3_504_872, f"{_TORCHVISION} (MobileNet v2)"),
            _FULL,
        ),
        _sensitive(
            "shufflenet",
            "vision",
            _Synergy(0.615, 512, _SMALL_NET, dict.fromkeys((12, 24), (2.0, 2.89, 2.89, 2.89))),
            _fp32(2_278_604, f"{_TORCHVISION} (ShuffleNet v2 x1.0)"),
            _FULL,
        ),
        _benchmarked("vgg16", 154, 35.4, _fp32(138_357_544, _TORCHVISION)),
        _benchmarked("inception-v3", 142, 30.5, _fp32(27_161_264, _TORCHVISION)),
        _entry(
            "bert-base",
            "language",
            (32, "chosen: what 32 GB hold at about a third of BERT-large's size"),
            _fp32(110e6, _BERT_PAPER),
            _times(
                110 / 340 / _BERT_LARGE_PER_S,
                f"BERT-large's time x 110/340 of its size; {_BERT_SOURCE}",
                _MIXED,
            ),
        ),
        _entry(
            "bert-large",
            "language",
            (14, _BERT_SOURCE),
            _fp32(340e6, _BERT_PAPER),
            _times(1 / _BERT_LARGE_PER_S, _BERT_SOURCE, _MIXED),
        ),
        _entry(
            "gpt2",
            "language",
            (8, "chosen: sequences of 1024 tokens that 32 GB hold"),
            _fp32(_GPT2_PARAMETERS, "released GPT-2 small"),
            _times(
                6 * _GPT2_PARAMETERS * 1024 / 39e12,
                "6 x parameters x 1024 tokens / 39 TFLOP/s sustained by a V100, Shoeybi et al. 2019",
                _MIXED,
            ),
        ),
        _insensitive(
            "gnmt",
            0.120,
            128,
            _fp32(160e6, "GNMT v2: 4 + 4 LSTM layers of 1024, vocabulary of 32,000, counted layer by layer"),
            _MIXED,
        ),
        _insensitive("transformer", 0.670, 128, _fp32(65e6, "Vaswani et al. 2017, base model"), _MIXED),
        _insensitive(
            "lstm",
            0.011,
            20,
            _fp32(13_987_678, "PyTorch word_language_model, 2 x 200, 33,278 words of wikitext-2, counted"),
            _MEMORY,
        ),
        _entry(
            "llama-7b",
            "language",
            (4, "chosen: sequences of 2048 tokens per GPU and step"),
            (_LLAMA_PARAMETERS * 2 / 1e6, "6.74 billion parameters (Touvron et al. 2023) x 2 bytes"),
            _llama_times(),
        ),
        _sensitive(
            "deepspeech2",
            "speech",
            _Synergy(0.757, 20, (0.30, 0.66, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), {}),
            _fp32(100e6, "largest English model of Amodei et al. 2016, recalled"),
            _MEMORY,
        ),
        _sensitive(
            "m5",
            "speech",
            _Synergy(
                0.600,
                512,
                (0.30, 0.66, 1.0, 1.2, 1.4, 1.5, 1.5, 1.5, 1.5),
                dict.fromkeys((6, 9, 12, 24), (1.5, 2.0, 2.5, 2.5)),
            ),
            _fp32(0.5e6, "Dai et al. 2017 (very deep CNNs for raw waveforms), M5"),
            _FULL,
        ),
        _entry(
            "ncf",
            "recommendation",
            (1_048_576, f"of the whole job, {_NVIDIA} PyTorch NCF README"),
            _fp32(31_832_577, "NeuMF on MovieLens-20M: factors 64, layers 256-256-128-64, counted"),
            _ncf_times(),
            scaling="strong",
        ),
    ]
)

FOR_OLDER_GPUS = tuple(
    sorted(name for name in ZOO if name != "llama-7b")
)  # that one is of 2023, and too large
