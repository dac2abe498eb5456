"""What a made-up company adds to embedded-twin: one extension of each kind, a file each."""
