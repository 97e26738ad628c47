"""What changed, as it happens: which events does a reader get, and when?"""
