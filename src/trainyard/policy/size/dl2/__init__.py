"""DL2 (Peng et al., TPDS'21): sizes chosen one task at a time by a learned policy."""
