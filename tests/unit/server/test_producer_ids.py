"""Producer ids: from blocks, each used up, never twice, one block at a time however many ask."""

import asyncio
from itertools import count

from barnabas.server.producer_ids import ProducerIds


def test_blocks_are_used_up_one_after_the_other() -> None:
    async def main() -> None:
        starts = count(1000, 3)
        asked = 0

        async def allocate() -> range:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0)
            start = next(starts)
            return range(start, start + 3)

        ids = ProducerIds(allocate)
        first = [await ids.next_id() for _ in range(4)]
        assert (first, asked) == ([1000, 1001, 1002, 1003], 2)
        rest = await asyncio.gather(*(ids.next_id() for _ in range(20)))
        assert sorted(rest) == list(range(1004, 1024))
        assert asked == 8

    asyncio.run(main())


def test_a_failed_allocation_is_tried_again_by_the_next_who_asks() -> None:
    async def main() -> None:
        answers = iter((OSError("no"), range(5, 6)))

        async def allocate() -> range:
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        ids = ProducerIds(allocate)
        results = await asyncio.gather(ids.next_id(), ids.next_id(), return_exceptions=True)
        assert isinstance(results[0], OSError) and results[1] == 5

    asyncio.run(main())
