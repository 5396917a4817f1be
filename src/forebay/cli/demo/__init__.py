"""forebay demo: processes of its own on a real broker, one of them killed, and an audit."""
