from azurite_fixtures import azurite, container  # noqa: F401  one for all of a process
