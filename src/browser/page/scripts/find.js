// Finding elements. The first part of the kit that lives in an isolated world of each frame.

const KEPT_MAX = 256;
const kept = new Map();
let nextId = 1;
// Observers are made at the first wait, so that pages nobody waits on pay nothing.
let changes = 0;
let observed = null;
const sleepers = new Set();

const keep = (element) => {
  const id = nextId++;
  kept.set(id, element);
  if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
  return id;
};

const squeeze = (text) => (text || "").replace(/[\s\u200b]+/g, " ").trim();

const parentOf = (node) => node.assignedSlot || node.parentNode || node.host || null;

const contains = (outer, inner) => {
  for (let node = inner; node; node = parentOf(node)) if (node === outer) return true;
  return false;
};

// Every element below `root`, open shadow trees included.
const everything = (root, visit) => {
  if (root.shadowRoot) everything(root.shadowRoot, visit);
  for (const element of root.querySelectorAll("*")) {
    visit(element);
    if (element.shadowRoot) everything(element.shadowRoot, visit);
  }
};

const roots = (scope, out = []) => {
  out.push(scope);
  if (scope.shadowRoot) roots(scope.shadowRoot, out);
  for (const element of scope.querySelectorAll("*")) if (element.shadowRoot) roots(element.shadowRoot, out);
  return out;
};

const matcherOf = (matcher) => {
  if (matcher.flags !== null) {
    const pattern = new RegExp(matcher.text, matcher.flags);
    return (text) => pattern.test(text);
  }
  const wanted = squeeze(matcher.text);
  if (matcher.exact) return (text) => text === wanted;
  const lower = wanted.toLowerCase();
  return (text) => text.toLowerCase().includes(lower);
};

const SILENT = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "TITLE"]);

const textOf = (element) => {
  if (element instanceof HTMLInputElement && ["submit", "button", "reset"].includes(element.type)) return element.value;
  if (!element.shadowRoot && !element.querySelector("script,style,noscript,template")) return element.textContent;
  let text = "";
  for (const child of (element.shadowRoot || element).childNodes) {
    if (child.nodeType === Node.TEXT_NODE) text += child.nodeValue;
    else if (child.nodeType === Node.ELEMENT_NODE && !SILENT.has(child.nodeName)) text += textOf(child);
  }
  return text;
};

// The innermost elements whose text matches.
const byText = (scope, matches) => {
  const found = [];
  everything(scope, (element) => {
    if (!SILENT.has(element.nodeName) && matches(squeeze(textOf(element)))) found.push(element);
  });
  const inner = new Set();
  for (const element of found) {
    for (let node = parentOf(element); node; node = parentOf(node)) {
      if (inner.has(node)) break;
      inner.add(node);
    }
  }
  return found.filter((element) => !inner.has(element));
};

const labelsOf = (element) => {
  const texts = [];
  const by = element.getAttribute("aria-labelledby");
  if (by) {
    const root = element.getRootNode();
    texts.push(by.split(/\s+/).map((id) => root.getElementById && root.getElementById(id)).filter(Boolean).map(textOf).join(" "));
  } else if (element.getAttribute("aria-label")) {
    texts.push(element.getAttribute("aria-label"));
  } else if (element.labels) {
    for (const label of element.labels) texts.push(textOf(label));
  }
  return texts.map(squeeze);
};

const engines = {
  css: (scope, step) => roots(scope).flatMap((root) => [...root.querySelectorAll(step.value)]),
  xpath: (scope, step) => {
    const result = document.evaluate(step.value, scope, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
    const found = [];
    for (let at = 0; at < result.snapshotLength; at++) {
      const node = result.snapshotItem(at);
      if (node.nodeType === Node.ELEMENT_NODE) found.push(node);
    }
    return found;
  },
  text: (scope, step) => byText(scope, matcherOf(step.matcher)),
  label: (scope, step) => {
    const matches = matcherOf(step.matcher);
    const found = [];
    everything(scope, (element) => {
      if (labelsOf(element).some(matches)) found.push(element);
    });
    return found;
  },
  attribute: (scope, step) => {
    const matches = matcherOf(step.matcher);
    return roots(scope).flatMap((root) =>
      [...root.querySelectorAll(`[${step.name}]`)].filter((element) => matches(squeeze(element.getAttribute(step.name)))));
  },
};

const isFrame = (node) => node.nodeName === "IFRAME" || node.nodeName === "FRAME";

const find = ({ steps, roots: from }) => {
  let scopes = from ? from.map((id) => kept.get(id)).filter(Boolean) : [document];
  if (from && scopes.length < from.length) return { lost: true };
  for (let at = 0; at < steps.length; at++) {
    const step = steps[at];
    if (step.engine === "nth") {
      const one = scopes.at(step.index);
      scopes = one && one !== document ? [one] : [];
      continue;
    }
    if (scopes.length === 1 && isFrame(scopes[0])) return { enter: keep(scopes[0]), consumed: at };
    try {
      scopes = [...new Set(scopes.flatMap((scope) => engines[step.engine](scope, step)))];
    } catch (error) {
      return { invalid: String(error.message || error) };
    }
  }
  return { found: scopes };
};
