"""Learning: how does DL2 learn to schedule? Environments, decision logs, training."""
