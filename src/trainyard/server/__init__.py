"""How do people and programs ask a controller?"""
