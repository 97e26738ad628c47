"""SMD (Yu et al., INFOCOM'21): what do its experiments give here?"""
