function describeValue(value) {
  // Runs in the world of the page on the value of an evaluation: makes JSON of anything, naming what
  // JSON cannot hold. Never throws.
  const DEPTH_MAX = 64;
  const NODES_MAX = 2000000;
  // A list may be long without holding anything.
  const LENGTH_MAX = 128 * 1024 * 1024;
  let nodes = 0;
  const path = [];
  const named = (kind, text) => `[${kind}${text ? " " + text : ""}]`;
  const element = (node) => {
    let text = node.nodeName.toLowerCase();
    if (node.id) text += "#" + node.id;
    if (typeof node.className === "string" && node.className.trim()) text += "." + node.className.trim().split(/\s+/).slice(0, 3).join(".");
    return named("Element", `<${text}>`);
  };
  // Even looking at what a thing is can throw.
  const walk = (item, depth) => {
    try {
      return look(item, depth);
    } catch (error) {
      let text = "";
      try { text = String(error); } catch { text = "error"; }
      return named("Unreadable", text);
    }
  };
  const look = (item, depth) => {
    switch (typeof item) {
      case "string": return item.toWellFormed ? item.toWellFormed() : item;
      case "boolean": return item;
      case "number":
        if (Object.is(item, -0)) return "-0";
        return Number.isFinite(item) ? item : String(item);
      case "bigint": return `${item}n`;
      case "symbol": return String(item);
      case "undefined": return null;
      case "function": return named("Function", item.name);
    }
    if (item === null) return null;
    if (path.includes(item)) return "[Circular]";
    if (depth > DEPTH_MAX) return "[Too deep]";
    if (++nodes > NODES_MAX) return "[Too large]";
    if (item instanceof Node) {
      if (item.nodeType === Node.ELEMENT_NODE) return element(item);
      return named(item.nodeType === Node.DOCUMENT_NODE ? "Document" : "Node", item.nodeName);
    }
    if (item === window) return "[Window]";
    if (item instanceof Date) return isNaN(item) ? "[Invalid Date]" : item.toISOString();
    if (item instanceof RegExp) return String(item);
    if (item instanceof Error) return item.stack && item.stack.includes(item.message) ? item.stack : `${item.name}: ${item.message}`;
    if (item instanceof Promise) return "[Promise]";
    if (item instanceof WeakMap || item instanceof WeakSet) return named(item.constructor.name);
    path.push(item);
    try {
      if (typeof item.toJSON === "function") return walk(item.toJSON(), depth + 1);
      if (item instanceof Map) return { "[Map]": [...item].map(([key, entry]) => [walk(key, depth + 2), walk(entry, depth + 2)]) };
      if (item instanceof Set) return { "[Set]": [...item].map((entry) => walk(entry, depth + 2)) };
      if (item instanceof ArrayBuffer) return named("ArrayBuffer", item.byteLength);
      const listed = Array.isArray(item) || (ArrayBuffer.isView(item) && !(item instanceof DataView)) ||
        item instanceof NodeList || item instanceof HTMLCollection;
      if (listed && item.length > LENGTH_MAX) return named(item.constructor.name, item.length);
      if (listed) return Array.from(item, (entry) => walk(entry, depth + 1));
      const out = Object.create(null);
      for (const key of Object.keys(item)) {
        let entry;
        try { entry = item[key]; } catch (error) { entry = `[Throws ${error}]`; }
        if (entry === undefined) continue;
        Object.defineProperty(out, key.toWellFormed ? key.toWellFormed() : key, { value: walk(entry, depth + 1), enumerable: true, configurable: true });
      }
      return out;
    } finally {
      path.pop();
    }
  };
  return JSON.stringify(walk(value, 0));
}
