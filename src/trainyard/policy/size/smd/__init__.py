"""SMD (Yu et al., INFOCOM'21): how many workers and servers per job, by sum of ratios and knapsack?"""
