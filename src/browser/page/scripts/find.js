// Finding elements. The first part of the kit that lives in an isolated world of each frame.

const KEPT_MAX = 4096;
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

// Links have a `host` of their own, which is a text.
const parentOf = (node) =>
  node.assignedSlot || node.parentNode || (node.nodeType === Node.DOCUMENT_FRAGMENT_NODE && node.host) || null;

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

// `may` is false where neither a text nor a part of it can match.
const matcherOf = (matcher) => {
  if (matcher.flags !== null) {
    const pattern = new RegExp(matcher.text, matcher.flags);
    return { may: () => true, is: (text) => pattern.test(text) };
  }
  const wanted = squeeze(matcher.text);
  if (matcher.exact) return { exact: wanted, may: (text) => text.includes(wanted), is: (text) => text === wanted };
  const lower = wanted.toLowerCase();
  const is = (text) => text.toLowerCase().includes(lower);
  return { may: is, is };
};

const SILENT = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "TITLE"]);
const SILENT_IN_LABELS = new Set([...SILENT, "SELECT", "TEXTAREA", "BUTTON"]);
const BUTTON_INPUTS = "input[type=submit],input[type=button],input[type=reset]";

// What a host's own shadow tree holds comes before what is put into its slots.
const childrenOf = (node) => (node.shadowRoot ? [...node.shadowRoot.childNodes, ...node.childNodes] : node.childNodes);

const textOf = (element, silent = SILENT) => {
  if (element.matches(BUTTON_INPUTS)) return element.value;
  let text = "";
  const stack = [element];
  while (stack.length) {
    const node = stack.pop();
    if (node.nodeType === Node.TEXT_NODE) text += node.nodeValue;
    else if (node === element || (node.nodeType === Node.ELEMENT_NODE && !silent.has(node.nodeName))) {
      for (let at = childrenOf(node).length, children = childrenOf(node); at--;) stack.push(children[at]);
    }
  }
  return text;
};

// The texts between an element's children.
const ownTexts = (element) => {
  const texts = [""];
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) texts[texts.length - 1] += child.nodeValue;
    else if (child.nodeType === Node.ELEMENT_NODE) texts.push("");
  }
  return texts.map(squeeze);
};

// The innermost elements whose text matches.
const byText = (scope, matcher) => {
  const shadows = roots(scope).length > 1;
  const plain = (element) => !shadows && !element.querySelector("script,style,noscript,template");
  const found = new Set();
  const stack = [...childrenOf(scope)].reverse();
  while (stack.length) {
    const element = stack.pop();
    if (element.nodeType !== Node.ELEMENT_NODE || SILENT.has(element.nodeName)) continue;
    const text = squeeze(plain(element) ? element.textContent : textOf(element));
    if (!matcher.may(text)) continue;
    if (matcher.is(text) || (matcher.exact && ownTexts(element).includes(matcher.exact))) found.add(element);
    for (let at = childrenOf(element).length, children = childrenOf(element); at--;) stack.push(children[at]);
  }
  for (const root of roots(scope)) {
    for (const input of root.querySelectorAll(BUTTON_INPUTS)) if (matcher.is(squeeze(input.value))) found.add(input);
  }
  const outer = new Set();
  for (const element of found) {
    for (let node = parentOf(element); node && !outer.has(node); node = parentOf(node)) outer.add(node);
  }
  return ordered(scope, new Set([...found].filter((element) => !outer.has(element))));
};

// In the order of the document, shadow trees where their hosts are.
const ordered = (scope, found) => {
  if (found.size < 2) return [...found];
  const out = [];
  everything(scope, (element) => { if (found.has(element)) out.push(element); });
  return out;
};

const labelsOf = (element) => {
  const texts = [];
  const by = element.getAttribute("aria-labelledby");
  if (by) {
    const root = element.getRootNode();
    const named = by.split(/\s+/).map((id) => root.getElementById && root.getElementById(id)).filter(Boolean);
    texts.push(named.map((one) => textOf(one)).join(" "));
  } else if (element.getAttribute("aria-label")) {
    texts.push(element.getAttribute("aria-label"));
  } else if (element.labels) {
    for (const label of element.labels) texts.push(textOf(label, SILENT_IN_LABELS));
  }
  return texts.map(squeeze);
};

// Cuts CSS where `wanted` holds, outside quotes, brackets and escapes.
const cutCss = (text, wanted) => {
  const parts = [];
  let [start, depth, quote] = [0, 0, ""];
  for (let at = 0; at < text.length; at++) {
    const here = text[at];
    if (here === "\\") at++;
    else if (quote) quote = here === quote ? "" : quote;
    else if (here === '"' || here === "'") quote = here;
    else if (here === "(" || here === "[") depth++;
    else if (here === ")" || here === "]") depth--;
    else if (!depth && wanted(here, at)) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  parts.push(text.slice(start));
  return parts.map((part) => part.trim()).filter(Boolean);
};

const CSS_PARTS_MAX = 8;

// Adds what matches across the edges of shadow trees: `a b` where b is in a shadow tree below a.
const pierce = (root, parts, found) => {
  for (let cut = 1; cut < parts.length; cut++) {
    const rest = parts.slice(cut);
    const inside = new Set();
    for (const left of root.querySelectorAll(parts.slice(0, cut).join(" "))) {
      for (const tree of roots(left).slice(1)) inside.add(tree);
    }
    for (const tree of inside) {
      for (const element of tree.querySelectorAll(rest.join(" "))) found.add(element);
      pierce(tree, rest, found);
    }
  }
};

const byCss = (scope, selector) => {
  const trees = roots(scope);
  const found = new Set(trees.flatMap((root) => [...root.querySelectorAll(selector)]));
  if (trees.length === 1) return [...found];
  for (const one of cutCss(selector, (here) => here === ",")) {
    const combined = (at) => /[>+~]\s*$/.test(one.slice(0, at)) || /^\s*[>+~]/.test(one.slice(at));
    const parts = cutCss(one, (here, at) => /\s/.test(here) && !combined(at));
    if (parts.length > 1 && parts.length <= CSS_PARTS_MAX) trees.forEach((tree) => pierce(tree, parts, found));
  }
  return ordered(scope, found);
};

const byXpath = (scope, path) => {
  // Below an element a path begins there, not at the document.
  const local = scope === document ? path : path.replace(/^(\(*)\//, "$1./");
  const result = document.evaluate(local, scope, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
  const found = [];
  for (let at = 0; at < result.snapshotLength; at++) {
    const node = result.snapshotItem(at);
    if (node.nodeType === Node.ELEMENT_NODE) found.push(node);
  }
  return found;
};

const matching = (scope, test) => {
  const found = [];
  everything(scope, (element) => { if (test(element)) found.push(element); });
  return found;
};

const engines = {
  css: (scope, step) => byCss(scope, step.value),
  xpath: (scope, step) => byXpath(scope, step.value),
  text: (scope, step) => byText(scope, matcherOf(step.matcher)),
  label: (scope, step) => {
    const matcher = matcherOf(step.matcher);
    return matching(scope, (element) => labelsOf(element).some(matcher.is));
  },
  attribute: (scope, step) => {
    const matcher = matcherOf(step.matcher);
    return matching(scope, (element) => element.hasAttribute(step.name) && matcher.is(squeeze(element.getAttribute(step.name))));
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
    if (step.engine === "visible") {
      scopes = scopes.filter((element) => visible(element) === step.wanted);
      continue;
    }
    if (scopes.length === 1 && isFrame(scopes[0])) return { enter: keep(scopes[0]), consumed: at };
    // Which of them is meant has to be said before going inside.
    if (scopes.length > 1 && scopes.every(isFrame)) return { found: scopes, several: true };
    try {
      scopes = [...new Set(scopes.flatMap((scope) => engines[step.engine](scope, step)))];
    } catch (error) {
      return { invalid: String(error.message || error) };
    }
  }
  return { found: scopes };
};
