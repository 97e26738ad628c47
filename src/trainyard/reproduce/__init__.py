"""Reproductions: what do the experiments of published papers give here, beside their numbers?"""
