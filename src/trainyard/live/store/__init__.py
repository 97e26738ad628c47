"""What is written down, and how, so that a controller that was killed loses nothing?"""
