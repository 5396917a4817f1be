"""forebay demo: xact on this machine, the world around it simulated, things broken, an audit."""
