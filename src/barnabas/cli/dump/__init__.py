"""`barnabas log dump` and `kafka-dump-log.sh`: what stands in the files of a log directory, for people and programs.

`files` reads, `segments` and `indexes` go through a file, `decoders` explain keys and values of the internal topics,
`text` has Kafka's lines and `json_form` those for programs, `faults` what did not fit; `command` is the command line,
`dumping` does what it says. Nothing here ever writes to a file, and no file has to be whole: what cannot be read is
named, and the rest is dumped.
"""
