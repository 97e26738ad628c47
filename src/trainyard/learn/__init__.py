"""Learning to schedule: environments on the engine, decision logs, training."""
