// The cases of tests/fixtures/conformance against Playwright, so that what they expect is known to be
// right. A case that names a peer's difference is run too, and must still differ.
// Arguments: parts of names of cases to run. Ends with 1 when anything is other than said.
// Started by the script beside it, in a directory where npm has put Playwright.
import { createRequire } from "node:module";
import { join } from "node:path";

import { cases, serve } from "./site.mjs";
import { fault, perform, watchDialogs } from "./steps.mjs";

/** How long a state may take to come about, and how often it is looked at. */
const STATE_MS = 3000;
const LOOK_MS = 20;
/** The longest a case may take; a page can hold the peer for ever. */
const CASE_MS = 40000;
/** Cases at one time. */
const AT_ONCE = 3;

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const checkStep = async (run, step) => {
  let given;
  try {
    given = await perform(run, step);
  } catch (error) {
    const got = fault(error);
    const right = got.code === step.fault && (step.count ?? got.count) === got.count &&
      (!step.reason || got.reason?.includes(step.reason));
    return right ? null : `${step.tool} ${JSON.stringify(step.arguments)} gave ${JSON.stringify(got)}`;
  }
  if (step.fault) return `${step.tool} ${JSON.stringify(step.arguments)} succeeded`;
  for (const [key, wanted] of Object.entries(step.gives ?? {})) {
    if (!same(given[key], wanted)) return `${step.tool} gave ${key} ${JSON.stringify(given[key])}`;
  }
  return null;
};

/** Everything that must hold in the end: what is looked at, and what it must be. */
const wanted = ({ page, context, one }) => [
  ...(one.said ? [["said", one.said, () => page.evaluate("said")]] : []),
  ...(one.tabs ? [["tabs", one.tabs, async () => context.pages().length]] : []),
  ...(one.expect ?? []).map(({ evaluate, equals }) => [evaluate, equals, () => page.evaluate(evaluate)]),
];

const checkState = async (run) => {
  const began = Date.now();
  for (const [what, must, look] of wanted(run)) {
    for (;;) {
      const got = await look().catch((error) => error.message);
      if (same(got, must)) break;
      if (Date.now() - began > STATE_MS) return `${what} is ${JSON.stringify(got)} and not ${JSON.stringify(must)}`;
      await pause(LOOK_MS);
    }
  }
  // Nothing more may come: another look once the page has drawn.
  await run.page.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(() => done(1)), 60))");
  for (const [what, must, look] of wanted(run)) {
    const got = await look();
    if (!same(got, must)) return `${what} went on to ${JSON.stringify(got)}`;
  }
  return null;
};

const check = async (browser, address, one) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 } });
  const limit = setTimeout(() => context.close().catch(() => {}), CASE_MS);
  try {
    const page = await context.newPage();
    const run = { page, context, one, home: address(one), dialogs: watchDialogs(page) };
    await page.goto(`${run.home}/`);
    for (const step of one.steps) {
      const problem = await checkStep(run, step);
      if (problem) return problem;
    }
    return await checkState(run);
  } catch (error) {
    return `the run broke: ${error.message}`;
  } finally {
    clearTimeout(limit);
    await context.close().catch(() => {});
  }
};

const { chromium } = createRequire(join(process.cwd(), "package.json"))("playwright-core");
const address = await serve();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
const asked = process.argv.slice(2);
const chosen = cases.filter((one) => !asked.length || asked.some((part) => `${one.group}.${one.name}`.includes(part)));
const problems = [];
const waiting = [...chosen];
const work = async () => {
  for (let one = waiting.shift(); one; one = waiting.shift()) {
    const problem = await check(browser, address, one);
    if (problem && !one.peer) problems.push(`${one.group}.${one.name}: ${problem}`);
    if (!problem && one.peer) problems.push(`${one.group}.${one.name}: no longer differs, yet: ${one.peer}`);
    if (problem && one.peer) console.log(`differs: ${one.group}.${one.name}: ${one.peer} (${problem.slice(0, 160)})`);
  }
};
await Promise.all(Array.from({ length: AT_ONCE }, work));
await browser.close();
for (const problem of problems) console.log(problem);
console.log(`${chosen.length} cases, ${problems.length} not as said`);
process.exit(problems.length || !chosen.length ? 1 : 0);
