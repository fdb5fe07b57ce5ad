"""Opens report pages in a real browser: layout, console, network, accessibility, tooltips, sorting, theme and print.

python check_page.py CHROMIUM PAGE...
"""

import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
SCREENS = [(1280, 900, "light"), (1280, 900, "dark"), (390, 844, "light"), (390, 844, "dark")]


def check(browser, page_path, width, height, scheme):
    """What is wrong with a page on one screen."""
    wrong = []
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.on("console", lambda message: wrong.append(f"console: {message.text}") if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
    page.on("request", lambda request: wrong.append(f"network: {request.url}") if not request.url.startswith("file:") else None)
    page.goto(page_path.resolve().as_uri())
    beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    if beyond > 0:
        wrong.append(f"the page is {beyond} pixels too wide")
    for violation in Axe().run(page).response["violations"]:
        wrong.append(f"axe {violation['id']}: {violation['nodes'][0]['html'][:200]}")
    charts = page.locator("figure svg")
    if charts.count() == 0:
        wrong.append("no chart")
    for index in range(charts.count()):
        chart = charts.nth(index)
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        if box["width"] < 300 or box["height"] < 150:
            wrong.append(f"chart {index} is {box['width']} by {box['height']}")
        spot = page.locator("figure[data-spots]").nth(index).locator("script").evaluate("s => JSON.parse(s.textContent).slice(0, 4).pop()")
        page.mouse.move(box["x"] + spot[0] * box["width"] / 800, box["y"] + spot[1] * box["width"] / 800)
        tip = page.locator("figure[data-spots]").nth(index).locator(".tip")
        if not tip.is_visible() or not any(letter.isdigit() for letter in tip.inner_text()):
            wrong.append(f"chart {index} shows no figure where {spot[2]} stands")
    means = page.locator("table").first.locator("thead button").nth(1)
    means.click()
    order = page.locator("table").first.locator("tbody tr td:nth-child(2)").evaluate_all("cells => cells.map(c => Number(c.dataset.sort))")
    if order != sorted(order, reverse=True) or means.locator("..").get_attribute("aria-sort") != "descending":
        wrong.append(f"the first table isn't sorted: {order[:5]}")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("button.theme").click()
    if page.evaluate("getComputedStyle(document.body).backgroundColor") == before:
        wrong.append("the theme doesn't change")
    page.emulate_media(media="print")
    if page.locator("nav").is_visible():
        wrong.append("the navigation is printed")
    context.close()
    return wrong


def main():
    chromium, *pages = sys.argv[1:]
    failed = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for path in map(Path, pages):
            for width, height, scheme in SCREENS:
                wrong = check(browser, path, width, height, scheme)
                failed += bool(wrong)
                print(f"{path} at {width} by {height}, {scheme}: {'; '.join(wrong) if wrong else 'fine'}")
        browser.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
