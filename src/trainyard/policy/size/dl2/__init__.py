"""DL2 (Peng et al., TPDS'21): which task does a trained network add next?"""
