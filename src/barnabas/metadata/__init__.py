"""The cluster's metadata: the image every broker looks things up in, and the stores that hold it."""
