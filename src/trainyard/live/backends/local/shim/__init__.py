"""How do the processes of one attempt on one node live and end, whoever else crashes?"""
