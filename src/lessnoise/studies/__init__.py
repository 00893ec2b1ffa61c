"""The case studies: data, mechanisms, results and pictures."""
