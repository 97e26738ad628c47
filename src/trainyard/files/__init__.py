"""Files: what do users write, what is wrong with it, and how is it read and written?"""
