"""Tasks launched as their board says, and run."""

from hwmodels.schedule.launch import launch_tasks
from hwmodels.schedule.run import run_tasks


def run_launched(tasks, npu):
    """Run tasks one after another, each with what launching it costs."""
    return run_tasks(launch_tasks(tasks, npu, [task.kind == "hybrid" for task in tasks]), npu)


def run_task(task, npu):
    """Run one task, launched by the host."""
    run, = run_launched([task], npu)
    return run
