"""Results made visible: numbers as words, pictures, pages, and how objects show themselves."""
