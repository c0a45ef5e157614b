"""Photograph the page ``trueup explore``: ``make screenshots``, with chromium installed."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "pictures"
OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SIZES = {"desktop": (1240, 840), "phone": (400, 860)}

TOWNS = ["Ashford", "Beckley", "Corve", "Dunmere", "Elstow"]
CELLS = "town,street,payroll,emp\n" + "".join(
    f"{TOWNS[i % 5]},{i // 5 + 1},{(5 + i * i // 9) / 2 + i * 7 % 5 - 2},{5 + i * i // 9 + i % 3}\n"
    for i in range(120)
)
VIEWS = {
    "estimator": "?f=1%2Fn&known=n+%3E%3D+5&near=bias+allowed&frontier=true",
    "none": "?f=abs%28q%29",
    "file": "?tab=File&formulas=mean+%3D+payroll%2Femp%0Asize+%3D+emp"
    "&file-known=emp+%3E%3D+5&file-noise-emp=discrete_laplace%282%29",
    "plan": "?tab=Plan",
    "table": "?tab=Plan&planned=a+private+table",
}


def prepare(page, view, folder):
    """Bring a view to the state in which it is photographed."""
    if view == "file":
        path = Path(folder, "cells.csv")
        path.write_text(CELLS, "utf-8")
        page.set_input_files("input[type=file]", path)
        page.get_by_text("First rows").wait_for(timeout=120_000)
        page.get_by_role("button", name="Debias the file").click()
        page.get_by_role("button", name="Download").wait_for(timeout=120_000)
    drawn = "[data-testid=stAlert]" if view == "none" else ".js-plotly-plot"
    page.locator(drawn).last.wait_for(timeout=120_000)
    page.wait_for_timeout(4_000)
    height = page.evaluate("document.querySelector('.block-container').scrollHeight")
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height + 40})
    page.mouse.move(2, 2)
    page.wait_for_timeout(1_000)


def shrink(path):
    """Keep the picture small: its 256 most frequent colours stay as they are."""
    from PIL import Image

    with Image.open(path) as picture:
        plain = picture.convert("RGB")
    counted = sorted(plain.getcolors(plain.width * plain.height), reverse=True)[:256]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in counted for part in colour])
    plain.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


def main():
    """Take every view in light and dark, on a desk and on a phone."""
    from playwright.sync_api import sync_playwright

    HERE.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "trueup", "explore", "--port", "0", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")  # noqa: S603
    chosen = sys.argv[1:] or list(VIEWS)
    try:
        address = server.stdout.readline().split()[2]
        with sync_playwright() as running, tempfile.TemporaryDirectory() as folder:
            path = shutil.which("chromium") or shutil.which("chromium-browser")
            browser = running.chromium.launch(executable_path=path, args=OPTIONS)
            for view in chosen:
                for size, (width, height) in SIZES.items():
                    for theme in ("light", "dark"):
                        page = browser.new_page(
                            viewport={"width": width, "height": height}, color_scheme=theme
                        )
                        page.goto(address + VIEWS[view])
                        prepare(page, view, folder)
                        name = f"explorer-{view}-{size}-{theme}.png"
                        page.screenshot(path=HERE / name, full_page=True)
                        shrink(HERE / name)
                        page.close()
            browser.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
