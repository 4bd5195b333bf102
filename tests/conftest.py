"""One hypothesis profile for all tests: the same examples on every machine, no deadlines."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tilewise",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tilewise")
