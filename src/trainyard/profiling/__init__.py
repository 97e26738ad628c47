"""Profiling: how fast is a training script, and which profile fits what was measured?"""
