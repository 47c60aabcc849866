"""MQTT 3.1.1 and 5 as a listener kind of the broker: what clients publish is appended to topics, and read from them."""
