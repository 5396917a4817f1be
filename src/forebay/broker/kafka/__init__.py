"""Apache Kafka through librdkafka, and a real broker from jars for trials and tests."""
