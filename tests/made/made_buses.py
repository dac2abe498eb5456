"""What a run of a bus says of a master, in its own cycles."""

from hwmodels.bus.events import FINISH, simulate_bus


def finish_cycles(run, master):
    """Return when each burst of a master finished, in cycles of its clock."""
    return run.times[run.bursts.range_of(master), FINISH] // run.period(master)


def lost_cycles(run, streams, master):
    """Return cycles of a master by which its last burst finished later than without any other."""
    alone = simulate_bus(run.bursts.interconnect, [one for one in streams if one.master == master])
    ends = [one.times[one.bursts.range_of(master), FINISH].max(initial=0) for one in (run, alone)]
    return (ends[0] - ends[1]) // run.period(master)
