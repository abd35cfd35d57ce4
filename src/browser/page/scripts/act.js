// Whether elements can be acted on, and the actions that need no real input. Second part of the kit.

// In quirks mode a bare :hover is for links alone.
const HOVERED = ":hover:not(_)";

const describe = (element) => {
  let text = element.nodeName.toLowerCase();
  if (element.id) text += `#${element.id}`;
  const names = element.getAttribute("class");
  if (names) text += "." + squeeze(names).split(" ").slice(0, 3).join(".");
  return `<${text.slice(0, 80)}>`;
};

const disabled = (element) => {
  if (element.matches(":disabled")) return true;
  for (let node = element; node; node = parentOf(node)) {
    if (node.nodeType === Node.ELEMENT_NODE && node.getAttribute("aria-disabled") === "true") return true;
  }
  return false;
};

const inert = (element) => {
  for (let node = element; node; node = parentOf(node)) if (node.inert) return true;
  return false;
};

// A label stands for the control it names.
const controlOf = (element) => {
  if (element.matches("input,textarea,select,[contenteditable]") || element.isContentEditable) return element;
  const label = element.closest("label");
  return (label && label.control) || element;
};

const UNTYPED = new Set(["checkbox", "radio", "file", "button", "submit", "reset", "image", "hidden"]);

const notEditable = (element, want) => {
  if (element instanceof HTMLSelectElement && want.action === "fill") return null;
  if (element instanceof HTMLInputElement) {
    if (UNTYPED.has(element.type)) return `not editable: <input type=${element.type}>`;
    return element.readOnly ? "not editable: it is read-only" : null;
  }
  if (element instanceof HTMLTextAreaElement) return element.readOnly ? "not editable: it is read-only" : null;
  return element.isContentEditable ? null : `not editable: ${describe(element)}`;
};

const deepest = (x, y) => {
  let root = document;
  let hit = null;
  for (;;) {
    const next = root.elementFromPoint(x, y);
    if (!next || next === hit) return hit;
    hit = next;
    if (!hit.shadowRoot) return hit;
    root = hit.shadowRoot;
  }
};

// Whether a press at the point reaches the element: itself, something inside it, the label that
// names it, or the button or link that it is a part of.
const reaches = (element, hit) => {
  if (!hit) return false;
  if (contains(element, hit)) return true;
  for (let node = hit; node; node = parentOf(node)) {
    if (node.nodeName === "LABEL" && node.control && contains(element, node.control)) return true;
  }
  const whole = element.closest("button,a,label,[role=button],[role=link]");
  return Boolean(whole) && contains(whole, hit);
};

const ALIGNMENTS = ["center", "end", "start", "nearest"];

// A control that is hidden behind its label is worked by the label.
const standIn = (element, want) => {
  if (!want.label || visible(element)) return element;
  return [...(element.labels || [])].find(visible) || element;
};

// One look at whether `element` can be acted on. Scrolls when that is what is missing.
const look = (element, want) => {
  if (!element.isConnected) return { reason: "detached" };
  if (want.editable) element = controlOf(element);
  if (want.enabled && disabled(element)) return { reason: "disabled" };
  element = standIn(element, want);
  if (!visible(element)) return { reason: "hidden" };
  if (want.editable) {
    const reason = notEditable(element, want);
    if (reason) return { reason };
  }
  if (!want.pointer) return { ok: true, box: element.getBoundingClientRect() };
  let hit = null;
  const reached = () => pointsOf(element, want.position).find((point) => {
    const found = deepest(point.x, point.y);
    hit = found || hit;
    return reaches(element, found);
  });
  let point = reached();
  for (const block of ALIGNMENTS) {
    if (point) break;
    hit = null;
    bodyOf(element).scrollIntoView({ block, inline: block, behavior: "instant" });
    point = reached();
  }
  if (point) return { ok: true, x: point.x, y: point.y, box: point.box };
  if (!hit) return { reason: "outside the viewport" };
  if (inert(element)) return { reason: "inert" };
  if (getComputedStyle(element).pointerEvents === "none") return { reason: "it takes no pointer events" };
  return { reason: `covered by ${describe(hit)}` };
};

const same = (one, other) =>
  Math.abs(one.x - other.x) < 0.5 && Math.abs(one.y - other.y) < 0.5 &&
  Math.abs(one.width - other.width) < 0.5 && Math.abs(one.height - other.height) < 0.5;

const tick = () => document.timeline.currentTime;

// The next frame, or a little later where the page draws none.
const frame = () => new Promise((done) => {
  const timer = setTimeout(done, 100);
  requestAnimationFrame(() => { clearTimeout(timer); done(); });
});

const observe = () => {
  if (!observed) {
    observed = new WeakSet();
  }
  for (const root of roots(document)) {
    const node = root.shadowRoot || root;
    if (observed.has(node)) continue;
    if (node !== document && node.nodeType !== Node.DOCUMENT_FRAGMENT_NODE) continue;
    observed.add(node);
    new MutationObserver(() => {
      changes++;
      for (const wake of [...sleepers]) wake();
    }).observe(node, { subtree: true, childList: true, attributes: true, characterData: true });
  }
};

// Resolves when the document changes, or after `ms`. The value says whether it changed.
const rest = async ({ ms }) => {
  observe();
  const before = changes;
  await new Promise((done) => {
    const timer = setTimeout(wake, ms);
    function wake() { clearTimeout(timer); sleepers.delete(wake); done(); }
    sleepers.add(wake);
  });
  return { changed: changes !== before, complete: document.readyState === "complete" };
};

const shape = (seen, want) => {
  if (!seen.ok) return seen;
  const { x, y, width, height } = seen.box;
  return { ok: true, x: seen.x, y: seen.y, box: { x, y, width, height }, tick: tick(), label: want.label };
};

// Whether an animation with an end still runs: what stands in the way may be on its way out.
const animated = () => document.getAnimations().some((animation) =>
  animation.playState === "running" && animation.effect && animation.effect.getComputedTiming().endTime < Infinity);

// Looks until the element can be acted on, `ms` is over, or nothing has changed for `quiet` ms.
const prepare = async (element, want) => {
  const end = performance.now() + want.ms;
  let seen = look(element, want);
  let last = null;
  for (;;) {
    if (seen.ok && !want.stable) return shape(seen, want);
    if (seen.ok && last && same(last, seen.box)) return shape(seen, want);
    if (seen.ok) {
      last = seen.box;
      if (performance.now() >= end) return { reason: "moving" };
      await frame();
    } else {
      last = null;
      const left = Math.min(want.quiet, end - performance.now());
      if (left <= 0 || seen.reason === "detached") return seen;
      const { changed } = await rest({ ms: left });
      // Styles may have changed without the document: one more look.
      if (!changed) {
        seen = look(element, want);
        if (!seen.ok) return { ...seen, quiet: left >= want.quiet && !animated() };
        continue;
      }
      await frame();
    }
    seen = look(element, want);
  }
};

const actions = {
  prepare,
  // After the pointer has moved there: still in place, still on top?
  async recheck(element, { x, y, box, tick: before, label }) {
    if (!element.isConnected) return { reason: "detached" };
    element = standIn(element, { label });
    // Under load the next frame may be late; without one, everything seems still.
    for (let wait = 0; wait < 5 && tick() === before; wait++) await frame();
    if (!same(box, element.getBoundingClientRect())) return { reason: "moving" };
    const hit = deepest(x, y);
    if (!reaches(element, hit)) return { reason: hit ? `covered by ${describe(hit)}` : "outside the viewport" };
    // The browser finds frames of other processes by what it last drew, which may be out of date: only
    // when the pointer really has come here will a press do so too.
    if (window !== window.top) {
      for (let look = 0; look < 3 && !hit.matches(HOVERED); look++) await frame();
      if (!hit.matches(HOVERED)) return { reason: "moving" };
    }
    return { ok: true };
  },
  // Where a point of a frame's document lies in its parent, and whether it shows there.
  async inside(element, { x, y }) {
    const place = () => {
      const box = element.getBoundingClientRect();
      const across = element.offsetWidth ? box.width / element.offsetWidth : 1;
      const down = element.offsetHeight ? box.height / element.offsetHeight : 1;
      const style = getComputedStyle(element);
      const left = element.clientLeft + parseFloat(style.paddingLeft);
      const top = element.clientTop + parseFloat(style.paddingTop);
      return { x: box.left + (left + x) * across, y: box.top + (top + y) * down };
    };
    let point = place();
    if (deepest(point.x, point.y) !== element) {
      // Scroll so that the point, not merely the frame, comes into view.
      element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
      point = place();
      if (point.y < 0 || point.y >= innerHeight || point.x < 0 || point.x >= innerWidth) {
        scrollBy({ left: point.x - innerWidth / 2, top: point.y - innerHeight / 2, behavior: "instant" });
        point = place();
      }
      // The browser finds frames of other processes by what it last drew.
      await frame();
      await frame();
    }
    const hit = deepest(point.x, point.y);
    if (hit !== element) return { reason: hit ? `covered by ${describe(hit)}` : "outside the viewport" };
    return { ok: true, ...point };
  },
  async focus(element, want) {
    const seen = await prepare(element, want);
    if (!seen.ok) return seen;
    const target = want.editable ? controlOf(element) : element;
    const root = target.getRootNode();
    const fresh = root.activeElement !== target;
    target.focus();
    if (want.caret && fresh) {
      if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) {
        try { target.setSelectionRange(target.value.length, target.value.length); } catch { /* number and the like have no caret */ }
      } else if (target.isContentEditable) {
        getSelection().selectAllChildren(target);
        getSelection().collapseToEnd();
      }
    }
    return { ok: true, password: target.type === "password" };
  },
  // Ready for one insertion that replaces everything.
  async fill(element, want) {
    const seen = await prepare(element, want);
    if (!seen.ok) return seen;
    const target = controlOf(element);
    const password = target.type === "password";
    const direct = ["date", "time", "datetime-local", "month", "week", "color", "range"];
    if (target instanceof HTMLInputElement && direct.includes(target.type)) {
      target.focus();
      const value = target.type === "color" ? want.value.toLowerCase() : want.value;
      const before = target.value;
      target.value = value;
      if (target.value !== value && !(target.type === "range" && value !== "" && Number(target.value) === Number(value))) {
        target.value = before;
        return { reason: `not editable: <input type=${target.type}> does not take this value`, final: true };
      }
      target.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
      target.dispatchEvent(new Event("change", { bubbles: true }));
      return { ok: true, done: true, password };
    }
    if (target instanceof HTMLSelectElement) {
      const wanted = [...target.options].find((option) => option.value === want.value) ||
        [...target.options].find((option) => squeeze(option.label) === squeeze(want.value));
      if (!wanted) return { reason: "not editable: <select> has no such option", final: true };
      target.focus();
      target.value = wanted.value;
      wanted.selected = true;
      target.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
      target.dispatchEvent(new Event("change", { bubbles: true }));
      return { ok: true, done: true, password };
    }
    if (target instanceof HTMLInputElement && target.type === "number" && want.value !== "" && isNaN(Number(want.value))) {
      return { reason: "not editable: <input type=number> takes only numbers", final: true };
    }
    target.focus();
    if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) {
      target.select();
      return { ok: true, done: want.value === "" && target.value === "", password };
    }
    getSelection().selectAllChildren(target);
    return { ok: true, done: want.value === "" && target.textContent === "", password };
  },
  state(element) {
    return { visible: visible(element) };
  },
  async scroll(element, want) {
    const seen = await prepare(element, want);
    if (!seen.ok) return seen;
    const { behavior } = want;
    bodyOf(element).scrollIntoView({ block: "center", inline: "center", behavior });
    return { ok: true };
  },
};
