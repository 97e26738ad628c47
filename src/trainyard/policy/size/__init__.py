"""Size: how big is each job?"""
