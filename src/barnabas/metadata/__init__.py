"""The cluster's metadata: the image that every broker reads, and the stores that hold it."""
