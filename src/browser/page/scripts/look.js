// Looking at elements and texts without touching them. Third part of the kit.

const SHOWN_MAX = 80;

Object.assign(actions, {
  // A few words by which a person would know the element.
  identify(element) {
    const own = element.getAttribute("aria-label") || squeeze(textOf(element)) || element.getAttribute("placeholder") ||
      element.getAttribute("title") || element.getAttribute("alt") || element.getAttribute("name") || "";
    return { element: describe(element), text: squeeze(own).slice(0, SHOWN_MAX).toWellFormed() };
  },
});
