"""How are decisions carried out on real machines, so that nothing is lost and nothing runs twice?"""
