"""What the product says of itself: one emitter, a closed catalogue of events, redaction."""
