"""Types: how many workers of which GPU types does each job get?"""
