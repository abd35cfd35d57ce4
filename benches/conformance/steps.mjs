// Each step of a case as Playwright does it, and its failures in the words of the cases.
import { mkdtempSync, writeFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** How long a step may take, and one that is to fail. */
const STEP_MS = 15000;
const FAILING_MS = 3000;

const unquote = (value) => {
  const found = value.match(/^(["'])(.*)\1$/s);
  return found ? found[2].replace(/\\(.)/g, "$1") : null;
};

const matcher = (value) => {
  const pattern = value.match(/^\/(.*)\/([a-z]*)$/);
  if (pattern) return [new RegExp(pattern[1], pattern[2]), {}];
  const exact = unquote(value);
  return exact === null ? [value, {}] : [exact, { exact: true }];
};

const engines = {
  // Its own text= compares a quoted text with single text nodes.
  text: (scope, value) => scope.getByText(...matcher(value)),
  label: (scope, value) => scope.getByLabel(...matcher(value)),
  placeholder: (scope, value) => scope.getByPlaceholder(...matcher(value)),
  alt: (scope, value) => scope.getByAltText(...matcher(value)),
  title: (scope, value) => scope.getByTitle(...matcher(value)),
  testid: (scope, value) => scope.getByTestId(unquote(value) ?? value),
};

/** A selector of ours as a locator. A part that names a frame goes on inside it, as ours does. */
export const locate = (page, selector) => {
  let scope = page;
  const parts = selector.split(" >> ");
  parts.forEach((part, at) => {
    const [, engine, value] = part.match(/^([a-z]+)=(.*)$/s) || [];
    scope = engines[engine] ? engines[engine](scope, value) : scope.locator(part);
    const here = part.startsWith("nth=") ? parts[at - 1] : part;
    const goesOn = at + 1 < parts.length && !parts[at + 1].startsWith("nth=");
    if (/^(iframe|frame)\b|^#[fa]$/.test(here) && goesOn) scope = scope.contentFrame();
  });
  return scope;
};

/** What went wrong, in the words of our faults. The last line of the call's log that tells is what counts. */
export const fault = (error) => {
  const message = String(error.message).replace(/\x1b\[\d+m/g, "");
  const several = message.match(/strict mode violation.* resolved to (\d+) elements/);
  if (several) return { code: "LOCATOR_AMBIGUOUS", count: Number(several[1]) };
  const noPlaceForFiles = /Node is not an HTMLInputElement|Not an input|Non-multiple file input/;
  if (noPlaceForFiles.test(message)) return { code: "UPLOAD_FAILED" };
  if (error.observing) return { code: "OBSERVATION_TIMEOUT" };
  if (/Unknown key/.test(message)) return { code: "INVALID_ARGUMENTS" };
  const noSelector = /Unexpected token|not a valid (selector|XPath)|Error while parsing|InvalidSelectorError/i;
  if (noSelector.test(message)) return { code: "INVALID_SELECTOR" };
  const reasons = [
    [/(<.*>) (from .* subtree )?intercepts pointer events/, (found) => `covered by ${short(found[1])}`],
    [/element is not visible/, () => "hidden"],
    [/element is inert/, () => "inert"],
    [/element is not enabled/, () => "disabled"],
    [/element is not stable/, () => "moving"],
    [/[Ee]lement is outside of the viewport/, () => "outside the viewport"],
    [/element is not editable|Element is not an <input>|cannot be filled/, () => "not editable"],
    [/Malformed value/, () => "not editable: does not take this value"],
    [/Cannot type text into input\[type=number\]/, () => "not editable: takes only numbers"],
    [/did not find some options/, () => "no such option"],
  ];
  for (const line of message.split("\n").reverse()) {
    for (const [pattern, reason] of reasons) {
      const found = line.match(pattern);
      if (found) return { code: "ELEMENT_NOT_ACTIONABLE", reason: reason(found) };
    }
  }
  if (/waiting for .*to be|waitFor: Timeout|waitForURL: Timeout/.test(message)) return { code: "WAIT_TIMEOUT" };
  if (/Timeout \d+ms exceeded/.test(message)) return { code: "ELEMENT_NOT_FOUND" };
  return { code: "OTHER", reason: message };
};

/** `<div id="cover" class="a b">` as `<div#cover.a.b>`. */
const short = (tag) => {
  const name = tag.match(/^<(\w+)/)[1];
  const id = tag.match(/ id="([^"]*)"/)?.[1];
  const names = tag.match(/ class="([^"]*)"/)?.[1];
  return `<${name}${id ? `#${id}` : ""}${names ? `.${names.split(" ").join(".")}` : ""}>`;
};

/** The dialogs of a page: the open one waits for its answer, or an answer waits for the next. */
export const watchDialogs = (page) => {
  const watch = { open: null, armed: null, opened: null };
  page.on("dialog", async (dialog) => {
    if (watch.armed) {
      const answer = watch.armed;
      watch.armed = null;
      await answer(dialog);
      return;
    }
    watch.open = dialog;
    watch.opened?.();
  });
  return watch;
};

const answerDialog = async (run, answer) => {
  if (!run.dialogs.open) {
    run.dialogs.armed = answer;
    return;
  }
  const dialog = run.dialogs.open;
  run.dialogs.open = null;
  const next = new Promise((done) => { run.dialogs.opened = done; });
  await answer(dialog);
  await Promise.race([next, run.page.evaluate("1").catch(() => {})]);
};

const upload = async ({ page, one, directory }, { selector, paths }, options) => {
  const files = paths.map((path) => join(directory, path));
  for (const path of paths) writeFileSync(join(directory, path), one.uploads[path]);
  await locate(page, selector).setInputFiles(files, options);
};

const download = async ({ page, directory }, { trigger_selector }, options) => {
  const coming = page.waitForEvent("download", { timeout: options.timeout });
  coming.catch(() => {});
  await locate(page, trigger_selector).click(options);
  const file = await coming;
  const path = join(directory, "download");
  await file.saveAs(path);
  return { suggested_name: file.suggestedFilename(), size: statSync(path).size };
};

const scroll = ({ page }, { mode, selector, x, y, dx = 0, dy = 0 }, options) => {
  if (mode === "selector") return locate(page, selector).scrollIntoViewIfNeeded(options);
  return page.evaluate(mode === "to" ? `scrollTo(${x}, ${y})` : `scrollBy(${dx}, ${dy})`);
};

const fillForm = async ({ page }, { fields }, options) => {
  for (const { selector, value } of fields) {
    const field = locate(page, selector);
    if (typeof value === "boolean") await field.setChecked(value, options);
    else if (await field.evaluate((element) => element.nodeName === "SELECT")) await field.selectOption(value, options);
    else await field.fill(value, options);
  }
};

const drag = async ({ page }, { from_x, from_y, to_x, to_y }) => {
  await page.mouse.move(from_x, from_y);
  await page.mouse.down();
  await page.mouse.move(to_x, to_y, { steps: 8 });
  await page.mouse.up();
};

const turnWheel = async ({ page }, { x, y, dx = 0, dy = 0 }) => {
  await page.mouse.move(x, y);
  await page.mouse.wheel(dx, dy);
};

/** Begins to watch for what an action must bring about; gives the promise of it. */
const consequence = ({ page }, { kind, pattern, selector, text, state, timeout = STEP_MS }) => ({
  response: () => page.waitForResponse(pattern, { timeout }),
  popup: () => page.waitForEvent("popup", { timeout }),
  download: () => page.waitForEvent("download", { timeout }),
  url: () => page.waitForURL(pattern, { timeout }),
  element: () => locate(page, selector).waitFor({ state, timeout }),
  text: () => page.getByText(text).waitFor({ timeout }),
})[kind]();

const tools = {
  mouse_move: ({ page }, { x, y }) => page.mouse.move(x, y),
  mouse_click: ({ page }, { x, y, button, click_count }) => page.mouse.click(x, y, { button, clickCount: click_count }),
  mouse_drag: drag,
  mouse_wheel: turnWheel,
  fill_form: fillForm,
  handle_dialog: (run, { accept, prompt_text }) =>
    answerDialog(run, (dialog) => (accept ? dialog.accept(prompt_text) : dialog.dismiss())),
  click: ({ page }, { selector, button, click_count, modifiers, position }, options) =>
    locate(page, selector).click({ ...options, button, clickCount: click_count, modifiers, position }),
  hover: ({ page }, { selector }, options) => locate(page, selector).hover(options),
  fill: ({ page }, { selector, value }, options) => locate(page, selector).fill(value, options),
  type_text: ({ page }, { selector, text }, options) => locate(page, selector).pressSequentially(text, options),
  press_key: ({ page }, { selector, key }, options) =>
    selector ? locate(page, selector).press(key, options) : page.keyboard.press(key),
  select_option: ({ page }, { selector, values }, options) => locate(page, selector).selectOption(values, options),
  drag_and_drop: ({ page }, { source_selector, target_selector }, options) =>
    locate(page, source_selector).dragTo(locate(page, target_selector), options),
  scroll,
  upload_file: upload,
  download_file: download,
  wait_for_selector: ({ page }, { selector, state }, options) => locate(page, selector).waitFor({ ...options, state }),
  wait_for_url: ({ page }, { url }, options) => page.waitForURL(url, options),
  navigate: ({ page, home }, { url }) => page.goto(url.replaceAll("{{here}}", home)),
  go_back: ({ page }) => page.goBack(),
  go_forward: ({ page }) => page.goForward(),
  reload: ({ page }) => page.reload(),
  accept_next_dialog: (run, { prompt_text }) => answerDialog(run, (dialog) => dialog.accept(prompt_text)),
  dismiss_next_dialog: (run) => answerDialog(run, (dialog) => dialog.dismiss()),
};

/** Does one step; ends early when a dialog opens, as a call of ours does. */
export const perform = async (run, step) => {
  const timeout = step.arguments.timeout ?? (step.fault ? FAILING_MS : STEP_MS);
  run.directory ??= mkdtempSync(join(tmpdir(), "conformance-"));
  const opened = new Promise((done) => { run.dialogs.opened = done; });
  const coming = step.arguments.wait_for && consequence(run, step.arguments.wait_for);
  coming?.catch((error) => Object.assign(error, { observing: true }));
  const acting = Promise.resolve(tools[step.tool](run, step.arguments, { timeout }));
  const doing = acting.then((given) => (coming ? coming.then(() => given) : given));
  doing.catch(() => {});
  return Promise.race([doing, step.tool.endsWith("_dialog") ? doing : opened]);
};
