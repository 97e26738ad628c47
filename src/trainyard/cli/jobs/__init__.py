"""Jobs: what do those ask for who submit, watch and stop jobs?"""
