// What the gateway calls. Last part of the kit; answers are plain values.

Object.assign(pages, {
  ...inputs,
  rest,
  // Whether there are file inputs, whose names are put together in a way of their own.
  files() {
    return roots(document).some((root) => root.querySelector("input[type=file]"));
  },
  content() {
    const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "";
    return (type + (document.documentElement ? document.documentElement.outerHTML : "")).toWellFormed();
  },
  scroll({ by, to, behavior }) {
    if (by) scrollBy({ left: by[0], top: by[1], behavior });
    if (to) scrollTo({ left: to[0], top: to[1], behavior });
    return { x: scrollX, y: scrollY };
  },
});

const onKept = (id, then) => {
  const element = kept.get(id);
  return element ? actions[then.action](element, then) : null;
};

return {
  keep,
  // Elements of a field's own inner tree are parts of the field, and no elements of the page.
  keepAll: (nodes) => nodes.map((node) => {
    const host = node.getRootNode().host;
    return node.isConnected && !(host && host.nodeName === "INPUT") ? keep(node) : 0;
  }),
  get: (id) => kept.get(id),
  async run(request) {
    if (request.page) return pages[request.page](request);
    if (request.each) return { lost: false, values: await Promise.all(request.each.map((id) => onKept(id, request.then))) };
    let target = request.id;
    const answer = {};
    if (request.steps) {
      const result = find(request);
      if (!result.found) return result;
      answer.count = result.found.length;
      answer.visible = request.count_visible ? result.found.filter(visible).length : 0;
      answer.ids = result.found.slice(0, request.keep).map(keep);
      if (result.several) answer.several = true;
      if (answer.count !== 1 || !request.then) return answer;
      target = answer.ids[0];
    }
    const element = kept.get(target);
    if (!element) return { lost: true };
    answer.id = target;
    if (request.then) answer.value = await actions[request.then.action](element, request.then);
    return answer;
  },
};
