"""Durable event pipelines. The public surface arrives with the engine."""
