"""One agent, one list of errands, three ways to fit its history into a budget: `python -m benchmarks.demo`."""
