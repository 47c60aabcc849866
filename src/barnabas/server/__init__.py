"""The broker: takes requests from the network and carries them out on logs, machines and metadata."""
