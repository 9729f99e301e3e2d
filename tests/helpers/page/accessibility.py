"""What a page that is open lacks for everybody: by axe-core, and controls that are too small."""

from __future__ import annotations

from axe_playwright_python.base import AXE_SCRIPT

# target-size (24 px, WCAG 2.5.8) is off by default.
_AXE = """async () => {
  // A button that has just been enabled fades in.
  await Promise.allSettled(document.getAnimations().map(({ finished }) => finished));
  const options = { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } };
  const { violations } = await axe.run(document, options);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target} ${node.html}`));
}"""
# Controls that are smaller than 24 px in one direction. Links in text may be as high as a line.
_SMALL = """() => [...document.querySelectorAll("a[href], button, input, textarea, summary")]
  .filter((node) => !(node.matches("a") && node.closest("p, li, td")))
  .map((node) => (node.matches("[type=checkbox], [type=radio]") && node.closest("label")) || node)
  .filter((node) => node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }))
  .map((node) => [node.outerHTML.slice(0, 120), node.getBoundingClientRect()])
  .filter(([, { width, height }]) => Math.min(width, height) > 1 && Math.min(width, height) < 24)
  .map(([html, { width, height }]) => `${width} x ${height}: ${html}`)"""


def violations(page) -> list[str]:
    """What axe-core finds serious or critical, each with its element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(_AXE)


def small_controls(page) -> list[str]:
    """Visible controls under 24 px, each with its size."""
    return page.evaluate(_SMALL)
