"""Shipped fakes, for users' tests and our own."""
