"""The command line: what does the user ask for?"""
