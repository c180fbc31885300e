"""What the contract suite asks of every study, computed in this process."""
