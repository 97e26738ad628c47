"""Learning a profile from the real thing: running a training script, and fitting what was measured."""
