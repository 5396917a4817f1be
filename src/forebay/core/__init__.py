"""Pure vocabulary and decisions: no clock, no I/O, no await."""
