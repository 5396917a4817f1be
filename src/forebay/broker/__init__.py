"""Topics, records, consumer groups: one port, two brokers behind it."""
