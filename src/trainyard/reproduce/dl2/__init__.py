"""DL2 (Peng et al., TPDS'21): what do its experiments give here?"""
