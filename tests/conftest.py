"""How properties are tested: the same examples on every run, a failing one printed so that it can be replayed."""

from hypothesis import settings

settings.register_profile("lre", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("lre")
