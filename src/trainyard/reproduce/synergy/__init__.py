"""Synergy (Mohan et al., OSDI'22): what do its experiments give here?"""
