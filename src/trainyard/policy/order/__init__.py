"""Order: who goes first?"""
