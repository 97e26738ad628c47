"""Solvers: what is the optimum of this linear program, integer program or knapsack?"""
