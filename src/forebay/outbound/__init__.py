"""The only way out over HTTP. Every connection is made here, and judged before it is made."""
