"""May this job be submitted, and if not, what is wrong with it?"""
