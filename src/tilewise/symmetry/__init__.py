"""Point groups and what they are to each other: known to all other folders."""
