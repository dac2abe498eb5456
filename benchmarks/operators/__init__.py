"""What operators of TFLite Micro execute, counted, beside what the twin lowers them to."""
