"""Synergy (Mohan et al., OSDI'22): how are CPUs and memory shared out by need?"""
