"""How does a store of an older version become one of this version?"""
