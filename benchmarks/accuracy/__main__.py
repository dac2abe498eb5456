"""How far off predictions are, beside baselines: `python -m benchmarks.accuracy [--sealed]`.

Prints the main tables, writes them between the markers of docs/accuracy.md, and keeps all of them
in `benchmarks/accuracy/results/`, dated, and every fit row, for the truth board of the site.
`--sealed` opens the rows no fit takes, as aggregates: to be run when nothing is left to choose.
Their medians at stated prices stood in the README for nine hours of model work before there was
`--sealed`: they are held out, not unseen.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from pathlib import Path

from benchmarks.accuracy.calibrated import MODEL_HERE, list_truth, validate
from benchmarks.accuracy.calibrated_report import make_calibrated_report
from benchmarks.accuracy.instructions import check_pmu, check_simulator
from benchmarks.accuracy.judgement import judge
from benchmarks.accuracy.report import make_details, make_summary
from hwmodels.files import write_whole

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"


def replace_between(text: str, inner: str) -> str:
    """Return text with what is between the markers replaced.

    Raises
    ------
    ValueError
        Without both markers, once each and in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"{BEGIN} and {END} must each occur once, in this order")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{inner}{END}{rest.split(END)[1]}"


def main() -> int:
    """Judge, print and record; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy")
    parser.add_argument("--sealed", action="store_true", help="judge sealed rows too")
    sealed = parser.parse_args().sealed
    start = time.perf_counter()
    judgement = judge(sealed=sealed)
    checks = {"counted by the PMU of the Apollo510 (Cortex-M55), each distinct layer of kws":
              check_pmu(),
              "counted on an instruction-set simulator": check_simulator()}
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    validation = validate(sealed=sealed)
    report = make_calibrated_report(validation) + "\n" + make_summary(judgement)
    print(report)
    results = HERE / "results"
    write_whole(results / "truth.json", json.dumps(
        list_truth(validation.guesses[MODEL_HERE]), indent=0).encode())
    path = results / f"{date}{'-sealed' if sealed else ''}.txt"
    write_whole(path, f"{report}\n{make_details(judgement, checks)}".encode())
    print(f"{len(judgement.cases)} rows in {time.perf_counter() - start:.1f} s", file=sys.stderr)
    shown = (f"{report}\nBy board, runtime and network at stated prices, and memory: "
             f"`{path.relative_to(PAGE.parents[1])}`; every fit row: the site's truth board.\n")
    try:
        write_whole(PAGE, replace_between(PAGE.read_text(encoding="utf-8"), shown).encode())
    except (OSError, ValueError) as error:
        print(f"{PAGE}: not updated: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
