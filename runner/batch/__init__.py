"""Many at once: plan and resume, one model's work in a child, the Ray driver, progress."""
