"""What the jobs are: declarations over one engine."""
