"""Client: which controller is asked, and how does it answer?"""
