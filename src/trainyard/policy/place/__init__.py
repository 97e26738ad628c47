"""Place: on which nodes does each worker and parameter server run?"""
