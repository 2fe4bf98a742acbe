"""A simulator of lakes: random histories of several clients, with faults anywhere, against a model in memory.

Everything follows from a seed. `python -m tests.property.simulation --seed 7` runs one program again.
"""
