"""Names under which metering adds to what a training loop reports."""

SECONDS = "raycosttune/seconds"
ITERATION_SECONDS = "raycosttune/iteration_seconds"
STARTUP_SECONDS = "raycosttune/startup_seconds"
ATTEMPT = "raycosttune/attempt"
INDEX = "raycosttune/report"
CHECKPOINT = "checkpoint_path"
FOLDER = "raycosttune"
