"""Sample traffic of the warehouse: app events and change records, the same ones again for the same seed.

`records` is the entrance; `events` writes what the app sends, `changes` what change data capture sends, `catalogue`
holds the words that both use. Nothing here knows a broker.
"""

from barnabas.pipeline.generator.records import GeneratedRecord, GeneratorOptions, generate

__all__ = ["GeneratedRecord", "GeneratorOptions", "generate"]
