"""One HTML file that holds all that is known of something, and opens offline."""
