"""Traces: which jobs did real clusters run, and how are similar ones generated?"""
