"""Tables for people: what the command line prints."""
