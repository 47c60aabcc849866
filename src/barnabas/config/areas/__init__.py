"""The broker's settings by area; `barnabas.config.broker` puts them together."""
