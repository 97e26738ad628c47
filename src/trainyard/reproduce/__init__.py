"""The experiments of published papers, each as one command: their numbers beside ours."""
