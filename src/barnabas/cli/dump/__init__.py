"""`barnabas log dump` and `kafka-dump-log.sh`: what stands in the files of a log directory, for people and programs.

`files` reads, `decoders` explain keys and values of the internal topics, `text` prints Kafka's lines, `command` is the
command line, `dumping` does what it says. Nothing here ever writes to a file, and no file has to be whole: what cannot
be read is named.
"""
