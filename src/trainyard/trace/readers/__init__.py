"""Readers: how does one row of each public trace become a job?"""
