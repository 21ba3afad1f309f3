"""Names under which this package adds to configs and to what a training loop reports."""

SECONDS = "raycosttune/seconds"
ITERATION_SECONDS = "raycosttune/iteration_seconds"
STARTUP_SECONDS = "raycosttune/startup_seconds"
ATTEMPT = "raycosttune/attempt"
WORKERS = "raycosttune/workers"
INDEX = "raycosttune/report"
CHECKPOINT = "checkpoint_path"
PROFILE = "raycosttune/profile"
FOLDER = "raycosttune"
SHARES = "raycosttune/shares"
COMPUTE_SECONDS = "raycosttune/compute_seconds"
IDLE_SECONDS = "raycosttune/idle_seconds"
IMBALANCE = "raycosttune/imbalance"
NOISE_SCALE = "raycosttune/noise_scale"
COST = "raycosttune/cost"
COST_UNIT = "raycosttune/cost_unit"
OF_WORKERS = (
    *(SHARES, COMPUTE_SECONDS, IDLE_SECONDS, IMBALANCE),
    *(NOISE_SCALE, COST, COST_UNIT),
)
