"""The demo: steps that change a lake, each of which prints only what it has checked."""
