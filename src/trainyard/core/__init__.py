"""The core: how does an event become instructions? No I/O, no clock of its own."""
