"""Colours: one per policy in every plot, told apart with any kind of colour vision."""

from __future__ import annotations

# Okabe and Ito's set, without black and yellow, which vanish on a dark or a light page, plus wine and grey.
POLICY_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#777777")
POLICY_DARK = ("#4C9FD9", "#F2803A", "#2BBF95", "#E094C0", "#F0B429", "#9AD4F5", "#C95C97", "#A8A8A8")

# Paul Tol's "light" set: fills that carry dark text, for jobs and tenants only: not to be taken for policies.
FILLS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00")
OTHER_FILL = "#BBBBBB"

# From few GPUs to many: viridis, in which lightness alone carries the order.
SIZE_FILLS = ("#FDE725", "#9BD93C", "#4AC16D", "#1FA187", "#277F8E", "#365C8D", "#46327E")

# When the colours have been used up, the line changes.
DASHES = ("solid", "dash", "dot", "dashdot")


def policy_style(index: int) -> tuple[int, str]:
    """Return the number of the colour and the dash of the policy at this position."""
    return index % len(POLICY_LIGHT), DASHES[index // len(POLICY_LIGHT) % len(DASHES)]
