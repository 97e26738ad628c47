"""Traces: readers of published ones, generators calibrated to them, and their statistics."""
