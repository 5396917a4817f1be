class WrongUse(Exception):
    """The command was asked for something that makes no sense; the sentence says what to write."""
