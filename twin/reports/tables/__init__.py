"""Tables for people: what the command line prints, as rich renderables."""
