"""Published numbers of SMD: read off the bars of its Figs. 7 to 12, to about half a per cent.

Total utilities are (SMD, ESW, Optimus), first with synchronous and then with asynchronous training.
"""

from __future__ import annotations

Totals = tuple[float, float, float]

# (synchronous, units of capacity) -> total utility; 50 jobs (Figs. 7 and 8)
BY_CAPACITY: dict[tuple[bool, int], Totals] = {
    (True, 1): (1211, 969, 1044),
    (True, 2): (1930, 1497, 1625),
    (True, 3): (2510, 1799, 2156),
    (True, 4): (2992, 1901, 2547),
    (True, 5): (3398, 2000, 2898),
    (False, 1): (1196, 1039, 1095),
    (False, 2): (1849, 1665, 1651),
    (False, 3): (2397, 2008, 2123),
    (False, 4): (2793, 2159, 2391),
    (False, 5): (3109, 2257, 2525),
}
# (synchronous, jobs) -> total utility (Figs. 9 and 10)
BY_JOBS: dict[tuple[bool, int], Totals] = {
    (True, 40): (2450, 1478, 2365),
    (True, 80): (4984, 3126, 4752),
    (True, 120): (7476, 4667, 6463),
    (True, 160): (10011, 6315, 8448),
    (True, 200): (16156, 9694, 13178),
    (False, 40): (2188, 1403, 1901),
    (False, 80): (4497, 2520, 3788),
    (False, 120): (6670, 3878, 5795),
    (False, 160): (9869, 5991, 8119),
    (False, 200): (14034, 8270, 11816),
}
# (synchronous, jobs) -> SMD's total utility as part of the optimum (Fig. 11)
OF_OPTIMUM: dict[tuple[bool, int], float] = {
    **{(True, 10): 0.760, (True, 20): 0.767, (True, 30): 0.836, (True, 40): 0.899, (True, 50): 0.917},
    **{(False, 10): 0.973, (False, 20): 0.982, (False, 30): 0.993, (False, 40): 0.994, (False, 50): 0.999},
}
# (synchronous, jobs) -> what SMD's jobs use of what they reserve (Fig. 12)
USED: dict[tuple[bool, int], float] = {
    **{(True, 40): 0.504, (True, 80): 0.407, (True, 120): 0.382, (True, 160): 0.412, (True, 200): 0.356},
    **{(False, 40): 0.439, (False, 80): 0.388, (False, 120): 0.335, (False, 160): 0.374, (False, 200): 0.336},
}
