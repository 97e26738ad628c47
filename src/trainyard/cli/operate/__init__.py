"""Commands of an operator: how is a live controller started, looked at and ended?"""
