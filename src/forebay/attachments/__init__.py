"""What domains do alike with the files their events name: download, cache, upload, record."""
