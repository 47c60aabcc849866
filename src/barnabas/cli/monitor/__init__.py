"""`barnabas monitor`: the console's overview in a terminal, of any Kafka, without a console process."""
