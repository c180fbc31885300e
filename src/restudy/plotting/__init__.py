"""One style for all figures, and the parts that studies share."""
