"""MQTT 3.1.1 and 5: packets to values and back, topic filters, and the rules from MQTT topics to ours. No I/O."""
