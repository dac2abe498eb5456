"""What a run of a bus says of a master, in its own cycles."""

from hwmodels.bus.events import FINISH


def finish_cycles(run, master):
    """Return when each burst of a master finished, in cycles of its clock."""
    return run.times[run.bursts.range_of(master), FINISH] // run.period(master)
