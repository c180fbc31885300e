"""What runs a stage, settles a checkout, locks, restores and estimates."""
