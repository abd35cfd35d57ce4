// Looking at elements and texts without touching them. Third part of the kit.

// What is asked of a document as a whole.
const pages = {};

const SHOWN_MAX = 80;
const TEXT_UNITS_MAX = 4 * 1024 * 1024;
const LINES_MAX = 200;
const LINE_MAX = 300;
const HIDDEN = "[hidden]";

const secret = (element) => element.type === "password" || !["", "none"].includes(getComputedStyle(element).webkitTextSecurity || "");

const isField = (node) => ["INPUT", "TEXTAREA", "SELECT"].includes(node.nodeName);

// What a field shows. Buttons show their value too.
const shownIn = (field) => {
  if (field.nodeName === "SELECT") return [...field.selectedOptions].map((option) => option.label).join(", ");
  if (["hidden", "checkbox", "radio", "file", "image", "color", "range"].includes(field.type) || secret(field)) return "";
  return field.value;
};

// Calls `text(string, node)` for what is to be seen below `top`, in order, and `edge()` between blocks.
const eachText = (top, text, edge) => {
  const seen = new Map();
  const shows = (element) => {
    if (!seen.has(element)) seen.set(element, element.checkVisibility({ visibilityProperty: true }));
    return seen.get(element);
  };
  const stack = [top];
  while (stack.length) {
    const node = stack.pop();
    if (node === edge) { edge(); continue; }
    if (node.nodeType === Node.TEXT_NODE) {
      const root = node.parentNode;
      const parent = root.nodeType === Node.DOCUMENT_FRAGMENT_NODE ? root.host : root;
      if (node.nodeValue.trim() ? shows(parent) : node.nodeValue) text(node.nodeValue, parent);
      continue;
    }
    if (node.nodeType !== Node.ELEMENT_NODE && node !== top) continue;
    if (SILENT.has(node.nodeName)) continue;
    const block = node.nodeType === Node.ELEMENT_NODE && (node.nodeName === "BR" || isField(node) || breaks(node));
    if (block) { edge(); stack.push(edge); }
    if (isField(node)) {
      const shown = shownIn(node);
      if (shown && shows(node)) text(shown, node);
      continue;
    }
    for (let at = childrenOf(node).length, children = childrenOf(node); at--;) stack.push(children[at]);
  }
};

const breaks = (element) => {
  const display = getComputedStyle(element).display;
  return display !== "inline" && display !== "contents" && display !== "none";
};

// The texts last gathered, by their place in the whole.
let gathered = { id: 0, pieces: [] };

// Everything that is to be seen as one text, a line for each block.
const gather = (top) => {
  const pieces = [];
  let whole = "";
  let broken = false;
  let capped = false;
  eachText(top, (raw, element) => {
    let text = raw.replace(/[\s\u200b]+/g, " ");
    if (broken || !whole || whole.endsWith(" ")) text = text.replace(/^ /, "");
    if (!text || capped) return;
    if (broken && whole) whole = whole.replace(/ $/, "") + "\n";
    broken = false;
    if (whole.length + text.length > TEXT_UNITS_MAX) { capped = true; return; }
    pieces.push({ start: whole.length, element });
    whole += text;
  }, () => { broken = true; });
  return { text: whole.toWellFormed(), pieces, capped };
};

pages.gather = () => {
  const { text, pieces, capped } = gather(document);
  gathered = { id: nextId++, pieces };
  return { id: gathered.id, text, capped };
};

// The elements that hold stretches of what was gathered, each as small as may be.
pages.pick = ({ id, spans }) => {
  if (id !== gathered.id) return { lost: true };
  const pieces = gathered.pieces;
  const at = (place) => {
    let [low, high] = [0, pieces.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (pieces[middle].start <= place) low = middle; else high = middle;
    }
    return pieces[low] && pieces[low].element;
  };
  const ids = spans.map(([start, end]) => {
    let holder = at(start);
    const last = at(Math.max(start, end - 1));
    while (holder && last && !contains(holder, last)) holder = parentOf(holder);
    while (holder && holder.nodeType !== Node.ELEMENT_NODE) holder = parentOf(holder);
    return holder && holder.isConnected ? keep(holder) : 0;
  });
  return { ids };
};

const valueOf = (element) => {
  if (element.type === "checkbox" || element.type === "radio") return String(element.checked);
  if (isField(element)) return secret(element) && element.value ? HIDDEN : element.value;
  if (element.hasAttribute("aria-checked")) return element.getAttribute("aria-checked");
  return element.isContentEditable ? element.innerText : null;
};

const checkedOf = (element) => {
  if (element.type === "checkbox" || element.type === "radio") return element.checked;
  const state = element.getAttribute("aria-checked") || element.getAttribute("aria-pressed");
  return state === null ? null : state === "true";
};

Object.assign(actions, {
  // A few words by which a person would know the element.
  identify(element) {
    const own = element.getAttribute("aria-label") || squeeze(textOf(element)) || element.getAttribute("placeholder") ||
      element.getAttribute("title") || element.getAttribute("alt") || element.getAttribute("name") || "";
    return { element: describe(element), text: squeeze(own).slice(0, SHOWN_MAX).toWellFormed() };
  },
  inspect(element, { value }) {
    const target = controlOf(element);
    const seen = { visible: visible(element), enabled: !disabled(target), checked: checkedOf(target), value: valueOf(target) };
    if (value !== undefined) {
      const labels = target.nodeName === "SELECT" ? [...target.selectedOptions].map((option) => squeeze(option.label)) : [];
      const plain = isField(target) && target.type !== "checkbox" && target.type !== "radio" ? target.value : seen.value;
      seen.equal = plain === value || labels.includes(squeeze(value));
    }
    if (typeof seen.value === "string") seen.value = seen.value.slice(0, LINE_MAX).toWellFormed();
    return seen;
  },
  // The lines of text that are to be seen in it.
  lines(element) {
    const lines = gather(element).text.split("\n").map(squeeze).filter(Boolean);
    return { lines: lines.slice(0, LINES_MAX).map((line) => line.slice(0, LINE_MAX).toWellFormed()), count: lines.length };
  },
});
