__version__ = "0.1.0"

CERTIFICATE_SCHEMA = 2
"""Version of the form of certificates that are written."""
