"""The model: what are clusters, jobs, profiles and allocations, and how fast does a job train?"""
