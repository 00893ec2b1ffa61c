"""Case study III: private learning."""
