"""Tune: how much CPU and memory goes with each GPU?"""
