"""A broker in one SQLite file: one machine, one disk, any number of processes."""
