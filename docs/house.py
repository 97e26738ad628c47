"""Draw docs/images/house.png: the rooms of the code, and the way of a job through them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

INK, PALE, STEP = "#1f2933", "#eef2f6", "#b4470f"


class Room(NamedTuple):
    """One folder: where it stands, and the question it answers."""

    name: str
    question: str
    x: float
    y: float
    width: float = 3.0
    height: float = 0.9


ROOMS = (
    Room("cli", "what does the user ask for?", 0.2, 8.6, 2.8),
    Room("reproduce", "what did the papers find?", 3.2, 8.6, 2.7),
    Room("report", "how does it look?", 6.1, 8.6, 2.1),
    Room("api", "the same, in Python", 8.4, 8.6, 2.2),
    Room("server", "how is it asked?", 10.8, 8.6, 2.3),
    Room("sim", "simulated clock: what becomes of these jobs?", 0.2, 7.2, 5.1),
    Room("learn", "how does DL2 learn?", 5.5, 7.2, 2.3),
    Room("live", "real clock: how does it happen, and exactly once?", 8.0, 7.2, 5.1),
    Room("core", "how does an event become instructions?", 0.2, 5.8, 12.9),
    Room("policy", "", 0.2, 2.95, 12.9, 2.35),
    Room("order", "who goes first?", 0.5, 3.15, 2.3, 1.45),
    Room("size, types", "how big,\nwhich GPU types?", 3.0, 3.15, 2.3, 1.45),
    Room("choose", "who runs now,\nwhy not the others?", 5.5, 3.15, 2.3, 1.45),
    Room("place", "on which nodes?", 8.0, 3.15, 2.3, 1.45),
    Room("tune", "how much CPU\nand memory?", 10.5, 3.15, 2.3, 1.45),
    Room("state", "which jobs, what is free, what is known?", 0.2, 1.55, 6.3),
    Room("trace", "which jobs did clusters run?", 6.8, 1.55),
    Room("profiling", "how fast is a script?", 10.1, 1.55),
    Room("solve", "what is the optimum?", 0.2, 0.2),
    Room("files", "what do users write?", 3.5, 0.2),
    Room("model", "cluster, job, profile, allocation; how fast does it train?", 6.8, 0.2, 6.3),
)
WAY = (
    ("1", 4.75, 0.93, "a job is read"),
    ("2", 1.35, 7.93, "a job arrives: an event"),
    ("3", 5.4, 6.25, "it gets a row in the state"),
    ("4", 0.85, 3.5, "rank"),
    ("5", 3.35, 3.5, "shape"),
    ("6", 5.85, 3.5, "choose"),
    ("7", 8.35, 3.5, "realise: place"),
    ("8", 10.85, 3.5, "realise: tune"),
    ("9", 8.9, 6.25, "the plan is checked: Start, Stop"),
    ("10", 9.2, 7.93, "the clock carries it out; the job ends"),
)


def draw(path: Path) -> None:
    """Write the picture."""
    figure, axes = plt.subplots(figsize=(13.3, 9.7), dpi=100)
    for room in ROOMS:
        corner, size = (room.x, room.y), (room.width, room.height)
        inner = room.name in ("order", "size, types", "choose", "place", "tune")
        colour = "white" if inner else PALE
        axes.add_patch(FancyBboxPatch(corner, *size, boxstyle="round,pad=0.03", fc=colour, ec=INK, lw=1.2))
        top = room.y + room.height - 0.12
        axes.text(room.x + 0.22, top, room.name, va="top", weight="bold", color=INK, size=12)
        axes.text(room.x + 0.22, top - 0.34, room.question, va="top", color=INK, size=10)
    for number, x, y, what in WAY:
        axes.text(x, y, number, color="white", weight="bold", size=10, ha="center", va="center",
                  bbox={"boxstyle": "circle,pad=0.25", "fc": STEP, "ec": STEP})  # fmt: skip
        axes.text(x + 0.25, y, what, color=STEP, size=10, va="center")
    axes.set_xlim(0, 13.3)
    axes.set_ylim(0, 9.7)
    axes.axis("off")
    figure.savefig(path, bbox_inches="tight")


if __name__ == "__main__":
    draw(Path(__file__).parent / "images" / "house.png")
