"""The state that a policy sees: which jobs are there, what is free, what is known of them?"""
