"""Predicted and measured together: what differs, by which cause, and which fault explains it."""
