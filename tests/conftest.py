"""Settings that hold for every test."""

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shared machine makes single examples slow by chance, so no deadline holds for one.
settings.register_profile("check", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("check")
