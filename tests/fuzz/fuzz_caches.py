"""Everything the program keeps for itself, damaged and replaced: answers stay the same.

    PYTHONPATH=tests/made python tests/fuzz/fuzz_caches.py [PART ...]

One row for each kind of file and of damage: a whole command whose output is that of an empty
cache. A row that says anything but "same" is a fault. It takes minutes; tests/hwmodels has the
short form.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from made_patience import HANG_S

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "core": ("predict", "ad", "-b", "nucleo_l4r5zi", "--json"),
    "image": ("predict", "ad", "-b", "nucleo_l4r5zi", "--runtime", "firmware", "--json")}
KINDS: Mapping[str, tuple[str, str]] = {
    "loop": ("core", "kernels/*/[!kl]*"), "loops' key": ("core", "kernels/*/key"),
    "loops' lock": ("core", "kernels/*/lock"), "classes": ("core", "files/nouns-*"),
    "blocks": ("core", "files/blocks-*"), "boards, overlays": ("core", "files/*.json"),
    "files' key": ("core", "files/key"), "files' lock": ("core", "files/lock"),
    "counts": ("core", "counts/counts.*"), "counts' key": ("core", "counts/key"),
    "counts' lock": ("core", "counts/lock"), "image": ("image", "images/*/firmware.elf"),
    "image's seal": ("image", "images/*/firmware.sha256")}
FOLDERS = ("kernels", "files", "counts", "images")


def run(words: tuple[str, ...], cache: Path, home: Path, *before: str) -> tuple[int, str, str]:
    """Run a command with its cache there; return its code, the hash of its output, and errors."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TWIN_")}
    result = subprocess.run(
        [*before, sys.executable, "-m", "twin", *words], capture_output=True, text=True,
        check=False, cwd=home, timeout=HANG_S, env=kept | {
            "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"})
    return (result.returncode, hashlib.sha256(result.stdout.encode()).hexdigest()[:12],
            result.stderr)


def replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def link(path: Path, to: Path) -> None:
    replace(path, lambda place: place.symlink_to(to))


def swap(path: Path) -> None:
    """Put in the place of a file another whole one of its kind."""
    others = [one for one in sorted(path.parent.glob("*")) if one.is_file() and one != path]
    if len(others) < 2:
        others = [one for one in sorted(path.parent.parent.glob("*/*"))
                  if one.is_file() and one.suffix == path.suffix and one != path] or others
    path.write_bytes(others[len(path.name) % len(others)].read_bytes() if others else b"")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes() or b"x")
    data[len(data) * 2 // 3] ^= 1
    path.write_bytes(data)


DAMAGE: Mapping[str, Callable[[Path, Path], object]] = {
    "empty": lambda path, _: path.write_bytes(b""),
    "garbage": lambda path, _: path.write_bytes(random.Random(1).randbytes(5000)),
    "cut": lambda path, _: path.write_bytes(path.read_bytes()[:-7]),
    "bit": lambda path, _: flip(path),
    "another's": lambda path, _: swap(path),
    "link to a file": lambda path, victim: link(path, victim),
    "link to nothing": lambda path, victim: link(path, victim.with_name("absent")),
    "link to itself": lambda path, _: link(path, path),
    "pipe": lambda path, _: replace(path, lambda place: os.mkfifo(place)),
    "folder": lambda path, _: replace(path, lambda place: (place / "x").mkdir(parents=True)),
    "others may write": lambda path, _: path.chmod(0o666),
    "a device": lambda path, _: link(path, Path("/dev/zero"))}


def tell(name: str, damage: str, answer: tuple[int, str, str], wanted: str, victim: Path) -> None:
    code, told, errors = answer
    odd = [line for line in errors.splitlines() if not line.startswith((
        "warning", "note", "compiling"))]
    said = "same" if (code, told) == (0, wanted) and not odd else f"EXIT {code}: {odd[-1:]}"
    if victim.read_bytes() != b"victim" or victim.with_name("absent").exists():
        said += ", THE LINK WAS FOLLOWED"
    print(f"| {name} | {damage} | {said} |", flush=True)


def try_files(folder: Path, wanted: Mapping[str, str], warm: Path) -> None:
    victim = folder / "victim"
    for kind, (command, pattern) in KINDS.items():
        for damage, spoil in DAMAGE.items():
            victim.write_bytes(b"victim")
            cache = folder / "cache"
            shutil.rmtree(cache, ignore_errors=True)
            shutil.copytree(warm, cache)
            found = sorted((cache / "embedded-twin").glob(pattern))
            for path in found:
                spoil(path, victim)
            if not found:
                print(f"| {kind} | {damage} | none is kept |")
                break
            answer = run(COMMANDS[command], cache, folder)
            tell(kind, damage, answer, wanted[command], victim)


def try_folders(folder: Path, wanted: Mapping[str, str], warm: Path) -> None:
    """Whole folders: others', writable by others, links, files, pipes; a home of no use."""
    victim = folder / "victim"
    victim.write_bytes(b"victim")

    def spoil(place: Path, how: str) -> None:
        if how == "others may write":
            place.chmod(0o777)
        elif how == "its group may write":
            place.chmod(0o770)
        elif how == "another's":
            os.chown(place, 12345, 12345)
        elif how == "read-only":
            place.chmod(0o500)
        else:
            shutil.rmtree(place)
            if how == "a link":
                place.symlink_to(folder / "elsewhere")
            elif how == "a file":
                place.write_bytes(b"")
            else:
                os.mkfifo(place)

    for name in (*FOLDERS, "."):
        for how in ("others may write", "its group may write", "another's", "read-only", "a link",
                    "a file", "a pipe"):
            cache = folder / "cache"
            shutil.rmtree(cache, ignore_errors=True)
            shutil.copytree(warm, cache)
            spoil(cache / "embedded-twin" / name if name != "." else cache / "embedded-twin", how)
            command = "image" if name == "images" else "core"
            tell(f"folder {name}", how, run(COMMANDS[command], cache, folder), wanted[command],
                 victim)
    for how, before in (("disk full", ("prlimit", "--fsize=2000:2000")),
                        ("disk full at once", ("prlimit", "--fsize=0:0"))):
        for command, words in COMMANDS.items():
            if command == "image" and "once" in how:
                continue  # nor could a compiler write
            for state in ("empty", "warm"):
                cache = folder / "cache"
                shutil.rmtree(cache, ignore_errors=True)
                if state == "warm":
                    shutil.copytree(warm, cache)
                answer = run(words, cache, folder, *before) if command == "core" else \
                    run(words, Path("/proc/1/none"), folder)
                tell(f"home, {state}", how if command == "core" else "cannot be written", answer,
                     wanted[command], victim)


def try_many(folder: Path, wanted: Mapping[str, str], _: Path) -> None:
    """Several processes at once on an empty cache; then ones that are killed as they begin."""
    victim = folder / "victim"
    victim.write_bytes(b"victim")
    cache = folder / "cache"
    for turn in range(2):
        shutil.rmtree(cache, ignore_errors=True)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: run(COMMANDS["core"], cache, folder), range(4)))
        for answer in answers:
            tell("all", f"four at once, turn {turn}", answer, wanted["core"], victim)
    shutil.rmtree(cache, ignore_errors=True)
    dice = random.Random(3)
    for _turn in range(20):
        child = subprocess.Popen(
            [sys.executable, "-m", "twin", *COMMANDS["image"]], cwd=folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env=os.environ | {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT)})
        try:
            child.wait(dice.uniform(0.2, 6))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    for command, words in COMMANDS.items():
        tell("all", "after 20 kills", run(words, cache, folder), wanted[command], victim)
    left = [path.name for path in cache.rglob("*") if path.name.startswith((".", "new-"))]
    print(f"| all | drafts left by 20 kills | {len(left)} |")


PARTS = {"files": try_files, "folders": try_folders, "many": try_many}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="attack.") as made:
        scratch = Path(made)
        once = {name: run(words, scratch / "empty", scratch) for name, words in COMMANDS.items()}
        assert all(code == 0 for code, _, _ in once.values()), once
        again = {name: run(words, scratch / "empty", scratch) for name, words in COMMANDS.items()}
        assert [one[1] for one in once.values()] == [one[1] for one in again.values()]
        print("| what | how | answer |")
        for part in sys.argv[1:] or PARTS:
            PARTS[part](scratch, {name: one[1] for name, one in once.items()}, scratch / "empty")
