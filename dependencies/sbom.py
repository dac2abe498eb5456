"""Write sbom.json: what an environment made from the locks holds, in CycloneDX.

Usage, with the interpreter of that environment:
    build/locking/bin/python dependencies/sbom.py PYTHON
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from packaging.utils import canonicalize_name

HERE = Path(__file__).parent


def main(python: str) -> None:
    """Have cyclonedx-py list the environment; addresses and descriptions are not kept."""
    found = subprocess.run(
        (sys.executable, "-m", "cyclonedx_py", "environment", "--sv", "1.5", "--short-PURLs",
         "--output-reproducible", "--pyproject", str(HERE.parent / "pyproject.toml"), python),
        check=True, stdout=subprocess.PIPE)
    bom = json.loads(found.stdout)
    demo = set(re.findall(r"^([\w.-]+)==", (HERE / "demo.lock").read_text("utf-8"), re.M))
    del bom["$schema"], bom["metadata"]["tools"]
    for component in bom["components"]:
        needed = canonicalize_name(component["name"]) in demo
        component["scope"] = "required" if needed else "optional"
        for key in ("externalReferences", "description"):
            component.pop(key, None)
    (HERE / "sbom.json").write_text(json.dumps(bom, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
