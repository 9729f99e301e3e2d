// Every piece of visible text with less than 4.5:1 against what lies behind it (disabled controls
// aside): [text, ratio, colour, background].
() => {
  const parse = (colour) => {
    const [r, g, b, a = 1] = (colour.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return { r, g, b, a };
  };
  const over = (top, under) => ({
    r: top.r * top.a + under.r * (1 - top.a),
    g: top.g * top.a + under.g * (1 - top.a),
    b: top.b * top.a + under.b * (1 - top.a),
    a: 1,
  });
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((value) => {
      const part = value / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const layer = parse(getComputedStyle(at).backgroundColor);
      if (layer.a > 0) layers.push(layer);
      if (layer.a === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 });
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    if (element.closest("button:disabled, .sr-only, style, script, [aria-hidden=true]")) continue;
    const style = getComputedStyle(element);
    const under = behind(element);
    const ink = over(parse(style.color), under);
    const [a, b] = [light(ink), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faint.push([text.slice(0, 40), ratio.toFixed(2), style.color, under]);
  }
  return faint;
}
