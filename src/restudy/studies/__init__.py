"""One paper, one folder; found, never registered."""
