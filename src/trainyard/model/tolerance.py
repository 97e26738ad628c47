"""Every tolerance once: which difference counts as none, by what it is measured in.

A name says the unit. Parts are relative: of a speed, a capacity, a cost.
"""

from __future__ import annotations

from typing import Final

CPUS_GB: Final = 1e-6  # CPUs or gigabytes: far below what jobs ask for, far above the rounding of sums
COUNT: Final = 1e-9  # workers, servers, rounds: a count this little below a whole number is that number
WHOLE_COUNT: Final = 1e-6  # the same for counts that a solver returns
SECONDS: Final = 1e-9  # stands for no time where something is divided by it
FINE_SECONDS: Final = 1e-12  # the same where the quotient may be huge
SHORT_SECONDS: Final = 1e-6  # stands for a moment that has not quite passed
SAMPLES: Final = 1e-9  # stands for no work where it must not be zero
SAMPLES_PER_S: Final = 1e-12  # stands for no speed where something is divided by it
PART: Final = 1e-9  # relative difference that counts as none
ROUGH_PART: Final = 1e-6  # the same for what a solver returns, or what was added up over a long time
FINE_PART: Final = 1e-12  # the same for what differs by rounding only
WHOLE_SHARE: Final = 1e-7  # shares of a linear program this close to 0 or 1 are whole
LEAST_POSITIVE: Final = 1e-300  # stands for zero in a logarithm or a quotient of any unit
