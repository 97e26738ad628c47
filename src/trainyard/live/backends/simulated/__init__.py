"""What would the jobs of a trace do, if they ran?"""
