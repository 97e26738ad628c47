"""Policies: who goes first, how big, where, and with how much CPU and memory?"""
