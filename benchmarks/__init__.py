"""
What a turn costs beside what a project would use instead: ``python -m benchmarks``.

``contestants`` are the stores, one file each, behind one contract; ``works`` are
what they are timed at. All take part in the same rounds of one process, so that
what else the machine does hits all alike: read ratios, not seconds.
"""
