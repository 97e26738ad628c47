"""Which path answers what?"""
