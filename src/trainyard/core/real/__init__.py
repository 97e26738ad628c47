"""What do real clusters do to jobs and nodes, and what becomes of them then?"""
