"""Choose: who of the ranked and sized jobs runs now, and why do the others wait?"""
