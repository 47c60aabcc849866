"""What the sessions of MQTT clients are, and what their log says of them. Pure."""
