"""Ready-made jobs that are configured, not programmed: `run_mod("kafka_consumer", {...})`."""
