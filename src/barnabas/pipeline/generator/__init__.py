"""Sample traffic of the warehouse: app events and change records, reproducible by seed.

`records` is the entry point; `events` generates what the app sends, `changes` what change data capture sends, and
`catalogue` holds the words that both use. Nothing here depends on a broker.
"""

from barnabas.pipeline.generator.records import GeneratedRecord, GeneratorOptions, generate

__all__ = ["GeneratedRecord", "GeneratorOptions", "generate"]
