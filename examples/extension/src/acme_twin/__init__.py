"""What a made-up company adds to embedded-twin: all five kinds of extension, a file each."""
