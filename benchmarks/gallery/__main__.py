"""Write `docs/gallery.md` and its pictures: `python -m benchmarks.gallery` (or `make gallery`).

Pictures are small (900 pixels, 128 colours); the commands under them draw them in full.
"""

import argparse
import io
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from twin.cli import app

ROOT = Path(__file__).parents[2]
IC, KWS = "ic -b nucleo_h7a3zi_q", "kws -b nucleo_l4r5zi"
NPU = "mobilenet_v2_0.35_96 -b stm32n6570_dk"
SWEEP = ("sweep kws ad -b nucleo_l4r5zi -b nucleo_h7a3zi_q -b nucleo_f401re --clock each "
         "--max-ms 60")

SHOWN = (
    (f"predict {IC} --plot DIR/", {
        "sheet": "layers beside the bill", "layers": "time of each layer by cause",
        "energy": "energy of each layer by cause", "bill": "the bill as a waterfall",
        "shares": "rings of groups, causes, operators", "roofline": "layers and roofs",
        "utilisation": "use of the hardware along an inference",
        "intervals": "intervals of the whole and of each layer",
        "arena": "which buffer lives where and when", "memories": "what fills RAM and flash",
        "layerwise_macs": "multiply-accumulates of each layer",
        "layerwise_activation_memory": "bytes of each layer's outputs"}),
    (f"predict {NPU} --plot DIR/", {
        "timeline": "units, stream engines, pools and epochs of an accelerator"}),
    (f"cache {IC} --plot DIR/", {
        "working_set": "working sets beside the cache", "miss_rate": "misses of each layer",
        "miss_curve": "misses over cache sizes", "access_map": "addresses over time",
        "bus_timeline": "who holds the bus"}),
    ("whatif kws -b nucleo_l4r5zi --runtime tflm-reference@2.3.1 "
     "--set runtime=tflm-cmsis-nn@2.3.1 --set placement.weights=sram --plot DIR/", {
         "before_after": "causes before and after a change",
         "configurations": "configurations by cause, with intervals",
         "steps": "time and energy after each step"}),
    (f"{SWEEP} --plot DIR/", {
        "pareto": "fronts with intervals and limits", "parallel": "what goes with what",
        "heat": "the least over two axes", "dashboard": "four quantities side by side",
        "radar": "what each is best at"}),
    (f"compare {KWS} --published --plot DIR/published.png", {
        "published": "predicted beside published rows"}),
    ("scenario run keyword_spotting --plot DIR/scenario.png", {
        "scenario": "power of a device by state, over time"}),
)
"""Commands, and the pictures of each that the page shows."""


def draw(command: str, folder: Path) -> None:
    """Run a command that writes pictures into a folder."""
    ended = CliRunner().invoke(app, command.replace("DIR", str(folder)).split())
    if ended.exit_code:
        raise SystemExit(f"twin {command}: {ended.stderr}")


def shrink(picture: Path, width: int = 900) -> bytes:
    """Return a picture no wider than that, in few colours."""
    from PIL import Image

    with Image.open(picture) as image:
        plain = image.convert("RGB")
        if plain.width > width:
            plain = plain.resize((width, round(plain.height * width / plain.width)),
                                 Image.Resampling.LANCZOS)
        content = io.BytesIO()
        plain.quantize(128).save(content, "PNG", optimize=True)
    return content.getvalue()


def make(page: Path) -> int:
    """Write the page and its pictures beside it; returns how many there are."""
    images = page.parent / "images" / "gallery"
    images.mkdir(parents=True, exist_ok=True)
    lines = ["# Gallery", "", "Every kind of picture, of real predictions, made by `python -m "
             "benchmarks.gallery`. Causes have one colour and hatch", "in all of them; what "
             "differs by colour differs by hatch, dashes, mark or lightness, too. `.svg` and "
             "`.pdf` are drawn as well.", ""]
    count = 0
    for command, pictures in SHOWN:
        with tempfile.TemporaryDirectory() as folder:
            draw(command, Path(folder))
            lines += [f"    twin {command.replace('DIR', 'out')}", ""]
            for name, text in pictures.items():
                (images / f"{name}.png").write_bytes(shrink(Path(folder) / f"{name}.png"))
                lines += [f"**{name}**: {text}", "", f"![{text}](images/gallery/{name}.png)", ""]
                count += 1
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "gallery.md")
    arguments = parser.parse_args()
    print(f"{make(arguments.page)} pictures beside {arguments.page}")
