"""What demo and tests install: pinned by version and hash, and listed as a bill of materials.

    python dependencies/pins.py install demo|test   what a lock file pins, or unpinned where it
                                                    does not fit, said in one line
    python dependencies/pins.py make                both lock files and sbom.json once more

A lock is of one interpreter and platform, named in its first lines: wheels differ between them.
Only the standard library and pip are used, for nothing else is installed yet.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
EXTRAS = {"demo": "plot", "test": "test"}
"""Extra of pyproject.toml by name of the lock file."""

BUILD = ("setuptools>=77",)
"""What builds the project itself, pinned too: it is installed without an isolated build."""

SBOM = HERE / "sbom.json"
OTHER_ARCHIVE = re.compile(r"DO NOT MATCH THE HASHES", re.IGNORECASE)
"""What pip says of an archive that is not the one that was pinned: never fallen back from."""

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
QUIET = ("install", "--quiet", "--no-compile")


def tell_platform() -> str:
    """Name interpreter and platform as a lock file does."""
    libc = platform.libc_ver()[0] or "other libc"
    return (f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}, "
            f"{platform.system()} {platform.machine()}, {libc}")


def hash_wanted() -> str:
    """Hash what pyproject.toml asks for; a lock of other wishes is out of date."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [project["dependencies"], project["optional-dependencies"], list(BUILD)]
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]


def lock_path(name: str) -> Path:
    """Return the lock file of that name."""
    return HERE / f"{name}.lock"


def read_head(name: str) -> dict[str, str]:
    """Return the facts in a lock file's first lines; {} without one."""
    path = lock_path(name)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)


def misfit(name: str) -> str | None:
    """Return why a lock cannot be installed from; None where it can."""
    head = read_head(name)
    if head.get("platform") != tell_platform():
        return f"it is of {head.get('platform', 'nothing')}, this is {tell_platform()}"
    if head.get("wanted") != hash_wanted():
        return "pyproject.toml asks for other packages; `make lock` makes it again"
    return None


def install(name: str) -> int:
    """Install the project and what it needs; returns an exit code."""
    why = misfit(name)
    if why is None:
        found = subprocess.run((*PIP, *QUIET, "--require-hashes", "-r", str(lock_path(name))),
                               text=True, capture_output=True, check=False)
        if found.returncode == 0:
            return subprocess.run((*PIP, *QUIET, "--no-deps", "--no-build-isolation", "-e",
                                   str(ROOT)), check=False).returncode
        if OTHER_ARCHIVE.search(found.stderr):
            sys.stderr.write(found.stderr)
            return found.returncode
        lines = [line for line in found.stderr.splitlines() if line.startswith("ERROR")]
        why = lines[-1][:160] if lines else "pip could not install it"
    print(f"{lock_path(name).name} is not used, versions are not pinned: {why}", file=sys.stderr)
    return subprocess.run((*PIP, *QUIET, "-e", f"{ROOT}[{EXTRAS[name]}]"),
                          check=False).returncode


def resolve(wishes: Sequence[str], pinned: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return pip's report of what it would install for these wishes, by name."""
    with tempfile.TemporaryDirectory() as folder:
        report, pins = Path(folder) / "report.json", Path(folder) / "pins.txt"
        pins.write_text("".join(f"{name}=={version}\n" for name, version in pinned.items()))
        subprocess.run((*PIP, "install", "--quiet", "--dry-run", "--ignore-installed", "--report",
                        str(report), "-c", str(pins), *wishes), check=True)
        found: list[dict[str, Any]] = json.loads(report.read_text())["install"]
    return sorted((one for one in found if "archive_info" in one["download_info"]),
                  key=lambda one: plain(one["metadata"]["name"]))


def plain(name: str) -> str:
    """Return a package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def sha256_of(package: Mapping[str, Any]) -> str:
    """Return the hash of a package's archive; raises KeyError for one that states none."""
    return str(package["download_info"]["archive_info"]["hashes"]["sha256"])


def write_lock(name: str, packages: Iterable[Mapping[str, Any]]) -> None:
    """Write versions and hashes; no place they came from."""
    lines = ["# Made by `make lock`; what `make` installs, checked by hash.",
             f"# platform: {tell_platform()}", f"# wanted: {hash_wanted()}"]
    lines += [f"{plain(one['metadata']['name'])}=={one['metadata']['version']} "
              f"--hash=sha256:{sha256_of(one)}" for one in packages]
    lock_path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_sbom(packages: Sequence[Mapping[str, Any]], demo: Iterable[str]) -> dict[str, Any]:
    """Return a bill of materials in CycloneDX 1.5.

    Parameters
    ----------
    packages : sequence of dict
        Of pip's report.
    demo : iterable of str
        Names of those the project runs with; others are of its tests.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed, known = set(demo), {plain(one["metadata"]["name"]): one for one in packages}
    refs = {name: f"pkg:pypi/{name}@{one['metadata']['version']}" for name, one in known.items()}
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    components = [{
        "type": "library", "bom-ref": refs[name], "name": name, "purl": refs[name],
        "version": one["metadata"]["version"],
        "scope": "required" if name in needed else "optional",
        "hashes": [{"alg": "SHA-256", "content": sha256_of(one)}], **license_of(one["metadata"]),
    } for name, one in known.items()]
    edges = [{"ref": refs[name], "dependsOn": sorted(
        refs[other] for other in needs_of(one["metadata"]) if other in refs and other != name)}
        for name, one in known.items()]
    direct = sorted(refs[name] for name, one in known.items() if one.get("requested"))
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": own, "purl": own,
                                   "name": project["name"], "version": project["version"],
                                   "licenses": [{"license": {"id": project["license"]}}]},
                     "properties": [{"name": "platform", "value": tell_platform()}]},
        "components": components, "dependencies": [{"ref": own, "dependsOn": direct}, *edges],
    }


def license_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a package says of its license, where that is short."""
    if expression := metadata.get("license_expression"):
        return {"licenses": [{"expression": expression}]}
    told = [one.rpartition(" :: ")[2] for one in metadata.get("classifier", ())
            if one.startswith("License ::") and one.count("::") > 1]
    text = str(metadata.get("license", "")).strip()
    names = told or ([text] if text and len(text) <= 60 and "\n" not in text else [])
    return {"licenses": [{"license": {"name": name}} for name in names]} if names else {}


def needs_of(metadata: Mapping[str, Any]) -> set[str]:
    """Return names of what a package needs, whatever the marker says."""
    return {plain(found[0]) for wish in metadata.get("requires_dist", ())
            if "extra ==" not in wish and (found := re.match(r"[\w.-]+", wish))}


def make() -> int:
    """Write both locks and the bill of materials; returns an exit code."""
    every = resolve((f"{ROOT}[{EXTRAS['test']}]", *BUILD), {})
    asked = wanted_names()
    for one in every:
        one["requested"] = plain(one["metadata"]["name"]) in asked
    pinned = {plain(one["metadata"]["name"]): one["metadata"]["version"] for one in every}
    demo = resolve((f"{ROOT}[{EXTRAS['demo']}]", *BUILD), pinned)
    write_lock("test", every)
    write_lock("demo", demo)
    sbom = make_sbom(every, [plain(one["metadata"]["name"]) for one in demo])
    SBOM.write_text(json.dumps(sbom, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"wrote {len(demo)} pins of the demo, {len(every)} of the tests, {SBOM.name}")
    return 0


def wanted_names(extra: str = "test") -> set[str]:
    """Return names pyproject.toml asks for by itself: always, and with an extra."""
    return {plain(re.split(r"[^\w.-]", wish)[0]) for wish in list_wishes(extra)}


def list_wishes(extra: str) -> list[str]:
    """Return what pyproject.toml asks for by itself, extras of its own followed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = re.compile(re.escape(project["name"]) + r"\[([\w, -]+)\]")
    open_wishes, found = [*project["dependencies"], f"{project['name']}[{extra}]"], []
    while open_wishes:
        wish = open_wishes.pop()
        if match := own.fullmatch(wish):
            for one in match[1].split(","):
                open_wishes += project["optional-dependencies"][one.strip()]
        else:
            found.append(wish)
    return found


if __name__ == "__main__":
    words = sys.argv[1:]
    if words == ["make"]:
        sys.exit(make())
    if len(words) == 2 and words[0] == "install" and words[1] in EXTRAS:
        sys.exit(install(words[1]))
    sys.exit(f"usage: python {sys.argv[0]} make | install {'|'.join(EXTRAS)}")
