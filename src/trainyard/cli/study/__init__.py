"""Study: what do those ask for who simulate, compare, plan, read traces, reproduce papers or train?"""
