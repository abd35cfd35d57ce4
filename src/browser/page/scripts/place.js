// Where elements show, and where to press them. Part of the kit, after finding.

const shown = (node) => node.checkVisibility({ visibilityProperty: true }) || getComputedStyle(node).display === "contents";

const filled = (box) => box.width > 0 && box.height > 0;

const PARTS_MAX = 16;

// The picture that an area is a part of, and where on it.
const pictureOf = (area) => {
  const name = area.closest("map")?.name;
  return name ? [...document.images].find((image) => image.useMap === `#${name}`) : null;
};

const rectOfArea = (area) => {
  const picture = pictureOf(area);
  if (!picture || !shown(picture)) return [];
  const box = picture.getBoundingClientRect();
  const [left, top] = [box.left + picture.clientLeft, box.top + picture.clientTop];
  const numbers = area.coords.split(",").map(Number);
  if (area.shape === "default" || numbers.length < 3) return [box];
  if (area.shape === "circle") {
    const [x, y, radius] = numbers;
    return [new DOMRect(left + x - radius, top + y - radius, 2 * radius, 2 * radius)];
  }
  const [across, down] = [0, 1].map((odd) => numbers.filter((_, at) => at % 2 === odd));
  const [x, y] = [Math.min(...across), Math.min(...down)];
  return [new DOMRect(left + x, top + y, Math.max(...across) - x, Math.max(...down) - y)];
};

// Where an element shows. One without a size of its own shows by what it holds, unless it cuts that off.
const rectsOf = (element) => {
  if (element instanceof HTMLAreaElement) return rectOfArea(element).filter(filled);
  const own = [...element.getClientRects()].filter(filled);
  if (own.length || getComputedStyle(element).overflow !== "visible") return own;
  const rects = [];
  for (const child of (element.shadowRoot || element).childNodes) {
    if (rects.length >= PARTS_MAX) break;
    if (child.nodeType === Node.ELEMENT_NODE && shown(child)) rects.push(...rectsOf(child));
    if (child.nodeType !== Node.TEXT_NODE) continue;
    const range = document.createRange();
    range.selectNode(child);
    rects.push(...[...range.getClientRects()].filter(filled));
  }
  return rects;
};

const visible = (element) => element.isConnected &&
  (shown(element) || element instanceof HTMLAreaElement) && rectsOf(element).length > 0;

// What to scroll to have an element in view: itself, unless only what it holds has a box.
const bodyOf = (element) => {
  if (element instanceof HTMLAreaElement) return pictureOf(element) || element;
  if ([...element.getClientRects()].some(filled)) return element;
  return [...element.querySelectorAll("*")].find((inner) => [...inner.getClientRects()].some(filled)) || element;
};

// Points of an element, best first: the middle of each part of it that is in view, a line of text that
// wraps counting as a part.
const pointsOf = (element, position) => {
  const box = element.getBoundingClientRect();
  if (position) return [{ x: box.left + element.clientLeft + position[0], y: box.top + element.clientTop + position[1], box }];
  const width = document.documentElement.clientWidth || innerWidth;
  const points = [];
  const rects = rectsOf(element).slice(0, PARTS_MAX);
  for (const part of rects) {
    const left = Math.max(part.left, 0);
    const right = Math.min(part.right, width);
    const top = Math.max(part.top, 0);
    const bottom = Math.min(part.bottom, innerHeight);
    if (right - left >= 0.5 && bottom - top >= 0.5) points.push({ x: (left + right) / 2, y: (top + bottom) / 2, box });
  }
  if (points.length) return points;
  const whole = rects[0] || box;
  return [{ x: whole.left + whole.width / 2, y: whole.top + whole.height / 2, box }];
};

const pointOf = (element) => pointsOf(element)[0];
