"""The least noise for a target (epsilon, delta): search, certificate of optimality, cache."""
