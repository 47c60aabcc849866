"""Examples that `--help` shows, by noun and verb. A test has the parsers read every one of them."""

from collections.abc import Sequence

_EXAMPLES: dict[str, Sequence[str]] = {
    "server stop": ("--data-dir /var/lib/barnabas",),
    "server status": ("--data-dir /var/lib/barnabas",),
    "topic create": ("orders -p 3 -c retention.ms=86400000", "audit --if-not-exists -c cleanup.policy=compact"),
    "topic list": ("", "--internal --json"),
    "topic describe": ("orders", "orders --all-config"),
    "topic alter": ("orders --set retention.ms=3600000 --unset max.message.bytes",),
    "topic delete": ("orders", "orders bills --if-exists"),
    "topic add-partitions": ("orders --to 6", "orders --by 3 --dry-run"),
    "topic offsets": ("orders", "orders --json"),
    "topic delete-records": ("orders -p 0 --before 1000",),
    "group list": ("", "--state Empty"),
    "group describe": ("billing", "billing --json"),
    "group members": ("billing",),
    "group reset-offsets": (
        "billing --topic orders --to-earliest",
        "billing --topic orders:0 --shift-by -10 --execute",
        "billing --topic orders --to-datetime 2026-01-31T12:00 --execute",
    ),
    "group delete": ("billing",),
    "group delete-offsets": ("billing --topic orders:0,1",),
    "config get": ("topic orders", "broker 0 --all", "topic orders retention.ms --docs"),
    "config set": ("topic orders cleanup.policy=compact", "broker all log.retention.ms=86400000"),
    "config unset": ("topic orders cleanup.policy",),
    "cluster describe": ("", "--json"),
    "cluster health": ("",),
    "cluster balance": ("", "--execute --throttle 50MB", "--topic orders --json"),
    "mirror": (
        "--from old:9092 --to new:9092 --topics 'orders|bills'",
        "--from old:9092 --to new:9092 --topics '.*' --groups '.*' --stop-at-end",
    ),
    "broker list": ("", "--json"),
    "broker drain": ("3", "3 --execute --throttle 50MB"),
    "broker decommission": ("3",),
    "produce": (
        "orders orders.txt",
        "orders -K : -z lz4 < lines",
        "orders -H source=shell -k customer-7",
    ),
    "consume": (
        "orders -o beginning -e",
        "orders -f '%t-%p@%o %k=%s\\n'",
        "orders -g billing -c 10 -J",
        "orders -o s@2026-01-31T12:00 -o e@2026-01-31T13:00",
    ),
    "delayed list": ("orders.delayed", "orders.delayed -n 100 --json"),
    "delayed cancel": ("orders.delayed 0 1234", "orders.delayed --schedule-id reminder-42"),
    "partition reassign": ("orders:0=1,2 orders:1=2,3", "--file plan.json"),
    "partition verify": ("", "orders:0=1,2"),
    "partition cancel": ("orders:0", "--all"),
    "partition elect": ("orders:0", "--all"),
    "transaction list": ("", "--json"),
    "transaction describe": ("billing-1",),
    "transaction producers": ("orders:0",),
    "transaction find-hanging": ("",),
    "transaction abort": ("orders:0 --start-offset 42",),
    "token create": ("--renewer scheduler", "--owner ann --max-life 7d --to job.properties"),
    "token list": ("", "ann --json"),
    "token renew": ("Ik3oGc1PTTShx3BTmMTqyg --for 12h",),
    "token expire": ("Ik3oGc1PTTShx3BTmMTqyg", "Ik3oGc1PTTShx3BTmMTqyg --in 10m"),
    "acl list": ("", "--topic orders"),
    "acl create": ("--allow-principal User:ann --operation read --topic orders",),
    "acl delete": ("--topic orders --dry-run",),
    "user list": ("",),
    "user create": ("ann --password-file ann.txt", "admin --data-dir /var/lib/barnabas"),
    "user password": ("ann", "admin --password-env ADMIN_PASSWORD --data-dir /var/lib/barnabas"),
    "user alter": ("ann --password-file ann.txt",),
    "user delete": ("ann",),
    "user quota": ("", "--user ann --set producer_byte_rate=1000000"),
    "certificate create": ("certificates", "certificates --host kafka.example --client alice"),
    "perf produce": ("speed -n 1000000 -s 100", "speed --throughput 1000 --json"),
    "perf consume": ("speed -n 1000000",),
    "perf latency": ("speed -n 1000",),
    "log dump": ("data/orders-0/00000000000000000000.log --print-data-log",),
    "log accept": ("/var/lib/barnabas orders-0",),
    "pipeline run": ("--checkpoint checkpoint --routing routing.toml", "--checkpoint checkpoint --tables --once"),
    "pipeline generate": ("--rate 1000 --duration 60", "-c 10000 --seed 7"),
    "pipeline status": ("--checkpoint checkpoint", "--checkpoint checkpoint --watch"),
    "completion": ("bash",),
}


def examples_text(words: str) -> str | None:
    """Of a noun, or of a noun and its verb; None if there are none."""
    found = _EXAMPLES.get(words)
    if not found:
        return None
    return "examples:\n" + "\n".join(f"  {f'barnabas {words} {each}'.rstrip()}" for each in found)


def all_examples() -> list[str]:
    return [f"{words} {each}".strip() for words, found in _EXAMPLES.items() for each in found]
