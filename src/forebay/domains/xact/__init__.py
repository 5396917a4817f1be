"""The xact job: an event names its attachments, and their files and rows are in the lakehouse."""
