"""What tasks, the host's operators and the hand-over between them cost."""
