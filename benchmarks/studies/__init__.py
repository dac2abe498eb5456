"""The shipped studies run once more, and where a cluster stops scaling."""
