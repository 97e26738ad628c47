"""Dynamic scheduling of ring jobs (Capes et al., 2019): what do its experiments give here?"""
