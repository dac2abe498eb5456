"""Typed requests, the commands that answer them, sessions that keep them, the live page."""
