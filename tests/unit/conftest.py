from hypothesis import settings

# A busy machine is no bug: examples have no deadline of their own, the test has one.
settings.register_profile("forebay", deadline=None)
settings.load_profile("forebay")
