"""Alarms: rules from a file, evaluated on every look at the cluster, told to channels that only the file names."""
