// Choosing options, and what dragging and the mouse by coordinates need to know. Third part of the kit.

// The options that the values name: by value, else by what they show. A text says what is missing.
const chosen = (select, values) => {
  const options = [...select.options];
  const found = new Set();
  for (const value of values) {
    const option = options.find((option) => option.value === value) ||
      options.find((option) => squeeze(option.label) === squeeze(value) || squeeze(option.text) === squeeze(value));
    if (!option) return { missing: `it has no option ${JSON.stringify(value.slice(0, 80))}` };
    if (option.matches(":disabled")) return { missing: `its option ${JSON.stringify(value.slice(0, 80))} is disabled` };
    found.add(option);
  }
  return { found };
};

const selectable = (element, { values }) => {
  const target = controlOf(element);
  if (!(target instanceof HTMLSelectElement)) return { reason: `${describe(target)} is no <select>: click it, then the option`, final: true };
  if (values.length > 1 && !target.multiple) return { reason: "it takes one option", final: true };
  const { found, missing } = chosen(target, values);
  return missing ? { reason: missing } : { target, found };
};

Object.assign(actions, {
  // Whether the options are there; they may still be on their way.
  async selectable(element, want) {
    const end = performance.now() + want.ms;
    for (;;) {
      const seen = await prepare(element, { ...want, ms: Math.max(0, end - performance.now()) });
      if (!seen.ok) return seen;
      const answer = selectable(element, want);
      if (!answer.reason) return { ok: true };
      const left = Math.min(want.quiet, end - performance.now());
      if (answer.final || left <= 0) return answer;
      const { changed } = await rest({ ms: left });
      if (!changed) return { ...answer, quiet: left >= want.quiet };
    }
  },
  select(element, want) {
    const { target, found, reason } = selectable(element, want);
    if (reason) return { reason };
    target.focus();
    for (const option of target.options) if (option.selected !== found.has(option)) option.selected = found.has(option);
    const selected = [...target.selectedOptions].map((option) => option.value.toWellFormed());
    target.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    target.dispatchEvent(new Event("change", { bubbles: true }));
    return { ok: true, selected };
  },
  // What kind of field it is, and whether it is checked.
  field(element) {
    const target = controlOf(element);
    if (target instanceof HTMLSelectElement) return { ok: true, kind: "select" };
    if (target instanceof HTMLInputElement && ["checkbox", "radio"].includes(target.type)) {
      return { ok: true, kind: target.type, checked: target.checked };
    }
    const aria = element.closest("[aria-checked]");
    if (aria) return { ok: true, kind: aria.getAttribute("role") === "radio" ? "radio" : "checkbox", checked: aria.getAttribute("aria-checked") === "true" };
    return { ok: true, kind: "text" };
  },
  // Whether a field shows what was put into it; null where there is nothing to compare.
  holds(element, want) {
    const target = controlOf(element);
    const typed = target instanceof HTMLTextAreaElement || target instanceof HTMLInputElement;
    const plain = (text) => text.replace(/\r\n?/g, "\n");
    if (!typed || ["range", "color"].includes(target.type)) return { ok: true, holds: null };
    return { ok: true, holds: plain(target.value) === plain(want.value) };
  },
  // Where it lies, in view or not.
  where(element) {
    const { x, y } = pointOf(element);
    return { ok: true, x, y };
  },
  // Where to bring something: the element's point, which what is dragged may cover.
  async place(element, want) {
    const seen = await prepare(element, want);
    if (!seen.ok) return seen;
    const outside = ({ x, y }) => x < 0 || y < 0 || x >= innerWidth || y >= innerHeight;
    if (outside(pointOf(element))) element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const { x, y } = pointOf(element);
    return { ok: true, x, y };
  },
});

let drag = null;
let dropEffect = null;
const noteDrag = (event) => { drag = event; };
const noteDrop = (event) => { dropEffect = event.dataTransfer ? event.dataTransfer.dropEffect : null; };

const inputs = {
  watch_drag() {
    drag = null;
    dropEffect = null;
    addEventListener("dragstart", noteDrag, { capture: true, once: true });
    addEventListener("dragend", noteDrop, { capture: true, once: true });
    return {};
  },
  dropped: () => ({ effect: dropEffect }),
  dragged: () => ({ started: Boolean(drag) && !drag.defaultPrevented }),
  point({ x, y }) {
    const hit = deepest(x, y);
    return { width: innerWidth, height: innerHeight, element: hit ? describe(hit) : "" };
  },
};
