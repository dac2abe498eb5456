"""A study kept in a folder: its file, its tasks and workers, and what its results say."""
