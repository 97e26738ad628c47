"""The matching market (Liu et al., TPDS'24): what do its experiments give here?"""
