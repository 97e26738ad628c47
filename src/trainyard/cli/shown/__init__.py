"""Shown: how do jobs, times and tables look on a terminal?"""
