"""How do jobs run as processes of this machine, whoever crashes?"""
