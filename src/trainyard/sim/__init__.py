"""Simulation: what becomes of these jobs under this policy? The core with a simulated clock."""
