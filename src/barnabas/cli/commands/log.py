"""`barnabas log dump` and `accept`: the files of a log. No broker is involved; each verb has a module of its own."""

from barnabas.cli.command import noun_main
from barnabas.cli.commands.log_accept import ACCEPT
from barnabas.cli.dump.command import DUMP

VERBS = (DUMP, ACCEPT)

main = noun_main("log", "Files of a log: segments, indexes, snapshots.", VERBS)
