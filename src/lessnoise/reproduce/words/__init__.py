"""What the report says: every number comes from the stored results; the paper's own are constants with their place."""
