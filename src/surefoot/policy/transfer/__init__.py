"""Earlier tasks."""
