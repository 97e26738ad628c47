"""Commands for those who study schedulers: simulate, compare, plan, traces, reproductions, training."""
