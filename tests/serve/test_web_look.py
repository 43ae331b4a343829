"""How the page looks and reads: both themes, on a desk and on a phone, and with the keyboard alone."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

from surefoot.report.theme import variables

pytest.importorskip("fastapi", reason="needs the service: pip install 'surefoot[serve]'")
pytest.importorskip("PIL", reason="needs pillow, which comes with matplotlib")

pytest_plugins = ["web_reader"]

CONTRAST = """() => {
  const parse = c => (c.match(/[\\d.]+/g) ?? []).map(Number);
  const light = c => { const v = c / 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; };
  const luminance = ([r, g, b]) => .2126 * light(r) + .7152 * light(g) + .0722 * light(b);
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > .5) return c;
    }
    return parse(getComputedStyle(document.body).backgroundColor);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || element.closest('.visually-hidden, noscript, :disabled')) continue;
    if (!element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
    const style = getComputedStyle(element);
    const ink = parse(element instanceof SVGElement ? style.fill : style.color), paper = ground(element);
    const [a, b] = [luminance(ink), luminance(paper)].sort((x, y) => y - x);
    found.push([(a + .05) / (b + .05), walker.currentNode.textContent.trim().slice(0, 40)]);
  }
  return found;
}"""
PICTURES = """() => [...document.querySelectorAll('figure svg')].map(svg => {
  const box = svg.getBoundingClientRect(), frame = svg.parentElement.getBoundingClientRect();
  return {name: svg.getAttribute('aria-label'), box: [Math.max(box.left, frame.left) + scrollX, box.top + scrollY,
          Math.min(box.right, frame.right) + scrollX, box.bottom + scrollY],
          outside: [...svg.querySelectorAll('text')].filter(t => { const r = t.getBoundingClientRect();
            return r.left < box.left - 2 || r.right > box.right + 2 || r.bottom > box.bottom + 2;
          }).map(t => t.textContent)};
})"""


def theme_colors(name):
    pairs = (entry.split(":") for entry in variables(name).split(";") if entry)
    return {key[2:]: np.array([int(value[i : i + 2], 16) for i in (1, 3, 5)]) for key, value in pairs}


def pixels_of(page, path):
    from PIL import Image

    png = page.screenshot(path=path, full_page=True, animations="disabled")
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def problems(visitor, path, colors, pictures):
    """Return what is wrong with what the reader sees now; its screenshot is written to the path."""
    page, found = visitor.page, []
    if (beyond := visitor.overflow()) != 0:
        found.append(f"{beyond} pixels wider than the window")
    pixels = pixels_of(page, path)
    if np.abs(pixels[-70, 2] - colors["paper"]).max() > 2:
        found.append(f"the paper has color {pixels[-70, 2]}")
    found += [f"contrast {ratio:.2f} of {text!r}" for ratio, text in page.evaluate(CONTRAST) if ratio < 4.5]
    drawings = page.evaluate(PICTURES)
    if len(drawings) != pictures:
        found.append(f"{len(drawings)} pictures instead of {pictures}")
    for drawing in drawings:
        left, top, right, bottom = (round(edge) for edge in drawing["box"])
        region = pixels[top:bottom, left:right].reshape(-1, 3)
        drawn = np.abs(region - colors["card"]).max(axis=1) > 24
        strong = max((np.abs(region - colors[role]).max(axis=1) <= 30).sum() for role in ("accent", "belief"))
        if right - left < 240 or not 0.005 < drawn.mean() < 0.95 or strong < 20:
            found.append(f"{drawing['name']}: {right - left} wide, {drawn.mean():.1%} drawn, {strong} strong pixels")
        if drawing["outside"]:
            found.append(f"{drawing['name']}: cut off {drawing['outside']}")
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_both_themes_at_two_widths(reader, tuned, followed, width, dark, tmp_path):
    visitor = reader(width=width, dark=dark)
    visitor.enter()
    theme = "dark" if dark else "light"
    places = {"studies": ("", 0), "new": ("new", 0), "tokens": ("tokens", 0)}
    places["tuned"] = (f"studies/{tuned['id']}", 1 + 1 + 4 + 1)  # progress, map, slices, all at once
    places["followed"] = (f"studies/{followed['id']}", 2 + 1 + 2 + 1)  # and learning curves
    for name, (place, pictures) in places.items():
        visitor.page.goto(f"{visitor.service.url}/#/{place}")
        visitor.page.locator(".pulse.live" if pictures else "main .card").first.wait_for()
        visitor.page.wait_for_function("document.querySelectorAll('.plot:empty').length === 0")
        path = tmp_path / f"{name}-{width}-{theme}.png"
        assert problems(visitor, path, theme_colors(theme), pictures) == [], name
    visitor.settled()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("document.querySelector('h1').style.color = 'var(--line)'", "contrast"),
        pytest.param(
            "document.querySelector('.facts').style.width = '900px'", "wider than the window", marks=pytest.mark.slow
        ),
        pytest.param("document.documentElement.dataset.theme = 'dark'", "the paper has color", marks=pytest.mark.slow),
        ("document.querySelectorAll('.plot').forEach(p => p.style.setProperty('--belief', 'none'))", "strong pixels"),
        pytest.param("document.querySelector('figure').remove()", "6 pictures instead of 7", marks=pytest.mark.slow),
        pytest.param(
            "document.querySelector('figure text').setAttribute('x', '-40')", "cut off", marks=pytest.mark.slow
        ),
    ],
)
def test_the_check_notices_a_spoiled_page(reader, tuned, spoil, said, tmp_path):
    visitor = reader(width=360)
    visitor.enter()
    visitor.open(tuned)
    visitor.page.get_by_role("button", name="Pause").click()
    found = ""
    for _ in range(5):  # an answer that was under way when it was paused may draw a picture anew
        visitor.page.evaluate(spoil)
        found = " ".join(problems(visitor, tmp_path / "spoiled.png", theme_colors("light"), 7))
        if said in found:
            break
    assert said in found


def test_the_reader_s_own_theme(reader, service):
    visitor = reader(dark=True)
    visitor.page.goto(service.url)

    def ground():
        return visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")

    dark, light = ("rgb({}, {}, {})".format(*theme_colors(name)["paper"]) for name in ("dark", "light"))
    assert ground() == dark
    visitor.page.get_by_role("button", name="Theme: system").click()
    assert ground() == light
    visitor.page.reload()
    assert ground() == light
    visitor.page.get_by_role("button", name="Theme: light").click()
    visitor.page.emulate_media(color_scheme="light")
    assert ground() == dark
    visitor.page.get_by_role("button", name="Theme: dark").click()
    assert ground() == light
    visitor.settled()


def test_with_the_keyboard_alone(reader, service, tuned):
    visitor = reader()
    page = visitor.page
    page.goto(f"{service.url}/#/studies/{tuned['id']}")
    page.get_by_label("Token", exact=True).focus()
    page.keyboard.type(service.admin)
    page.keyboard.press("Enter")
    page.locator(".pulse.live").wait_for()
    page.reload()  # the token stays, the focus begins at the top
    page.locator(".pulse.live").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    chart = page.get_by_role("img", name=re.compile("Values of the trials in order"))
    chart.focus()
    page.keyboard.press("ArrowLeft")
    page.locator(".readout", has_text="Trial 9:").wait_for()
    page.keyboard.press("ArrowLeft")
    page.locator(".readout", has_text="Trial 8:").wait_for()
    assert page.locator("tr.chosen th").inner_text() == "8"
    page.mouse.move(10, 10)
    chart.hover(position={"x": 80, "y": 100})  # and with the pointer
    page.locator(".readout", has_text="Trial 1:").wait_for()
    page.get_by_text("The numbers of Values in order").focus()
    page.keyboard.press("Enter")
    numbers = page.get_by_role("region", name="The numbers of Values in order")
    numbers.wait_for()
    assert numbers.get_by_role("row").count() == 1 + 9
    unnamed = page.evaluate("""[...document.querySelectorAll('button, a, input, select, textarea, svg[role=img]')]
        .filter(e => !(e.textContent.trim() || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)""")
    assert unnamed == []
    assert page.evaluate("['header', 'nav', 'main', 'footer', 'h1'].map(n => document.querySelectorAll(n).length)") == [
        1, 2, 1, 1, 1,
    ]  # fmt: skip
    visitor.settled()
