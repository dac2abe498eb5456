"""Set-up faults planted on emulated boards, and how well the diagnosis finds them."""
