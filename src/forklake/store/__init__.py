"""The metadata database: one protocol, three backends, and the rows that go through it."""
