"""Apache Kafka and Barnabas do the same work in turns, in one run: `python -m benchmarks`.

Broker processes are started and measured by tests/support, as the tests start them.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
