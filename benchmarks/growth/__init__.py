"""Does a task cost more when there is more of something? `make bench-growth`, or `python -m benchmarks.growth --help`.

Tickwork alone, each question at three sizes. A question is one entry of the table in `questions.py`: what grows, how it
is measured, and which of its costs have to stay. `drains.py` measures client and worker processes from outside, as the
comparison with peers does; `claims.py`, `flows.py` and `waiting.py` call a store, or start nodes, in this process, so
that nothing but the store is measured. What counts is CPU, commands and bytes: on few cores the rate cannot grow.
"""
