"""How does an allocation become processes: on this machine, or by an engine that a site already runs?"""
