"""Methods that papers share and that a user may import for a model of his own; they know no study and no preset."""
