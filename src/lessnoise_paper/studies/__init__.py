"""Case studies on real data, each with one command: published settings first, then the comparison on equal terms."""
