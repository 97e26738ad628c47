"""Reports: how does a result become a table, a plot or a page?"""
