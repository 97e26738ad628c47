"""Which steps lead from one version of the store to the next?"""
