from kafka_fixtures import kafka  # noqa: F401  one Kafka for all of a process
