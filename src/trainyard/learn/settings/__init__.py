"""Settings: on which clusters and jobs does DL2 learn, and by which is it judged?"""
