// Asks each server for the console and the network of one page, as an agent would, and counts the bytes
// of text that a model gets to read. Every reply must tell of every line and every request, or it is no
// comparison. Started by the script beside it, in a directory where npm has put the peers.
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const COUNT = 100;
const WAIT_MS = 30000;
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
const root = process.getuid() === 0;

const SCRIPT = `
const say = [
  (n) => console.log("cart: item " + n + " added, total " + (n * 3.5).toFixed(2)),
  (n) => console.info("session " + n + " refreshed"),
  (n) => console.warn("slow response from /api/items/" + n + ": " + (200 + n) + " ms"),
  (n) => console.error("could not load item " + n + ": status 404"),
];
for (let n = 0; n < ${COUNT}; n++) say[n % say.length](n);
const ask = (n) => fetch("/api/v2/items/" + n + "?fields=name,price", n % 10 ? {} : { method: "POST", body: "{}" });
Promise.all(Array.from({ length: ${COUNT} }, (_, n) => ask(n))).then(() => (document.title = "done"));
`;

/** What the page itself writes, which no form can shorten. */
const TEXT_BYTES = Array.from({ length: COUNT }, (_, n) => [
  `cart: item ${n} added, total ${(n * 3.5).toFixed(2)}`,
  `session ${n} refreshed`,
  `slow response from /api/items/${n}: ${200 + n} ms`,
  `could not load item ${n}: status 404`,
][n % 4].length).reduce((sum, length) => sum + length, 0);

const site = createServer((request, response) => {
  const api = request.url.startsWith("/api/");
  const types = { "/": "text/html", "/app.js": "text/javascript" };
  const body = request.url === "/" ? "<!doctype html><link rel=icon href=data:,><script src=/app.js></script>"
    : request.url === "/app.js" ? SCRIPT : '{"name":"a"}';
  response.writeHead(api || types[request.url] ? 200 : 404, { "content-type": types[request.url] ?? "application/json" });
  response.end(body);
});

class Client {
  constructor(command, parameters) {
    this.child = spawn(command, parameters, { stdio: ["pipe", "pipe", "ignore"] });
    this.waiting = new Map();
    this.last = 0;
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
    });
  }

  send(message) {
    this.child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  }

  ask(method, params) {
    const id = ++this.last;
    const answered = new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error(`${method} is not answered`)), WAIT_MS).unref();
      this.waiting.set(id, resolve);
    });
    this.send({ id, method, params });
    return answered;
  }

  async start() {
    const clientInfo = { name: "economy", version: "1" };
    await this.ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    this.send({ method: "notifications/initialized" });
  }

  /** The text that a tool gives. */
  async text(name, parameters) {
    const { result, error } = await this.ask("tools/call", { name, arguments: parameters });
    if (error || result.isError) throw new Error(`${name}: ${JSON.stringify(error ?? result).slice(0, 500)}`);
    return result.content.map((block) => block.text ?? "").join("");
  }

  stop() {
    this.child.stdin.end();
    this.child.kill();
  }
}

const bin = (name) => join("node_modules", ".bin", name);

const peers = {
  async playwright(url) {
    const flags = ["--headless", "--isolated", "--executable-path", chromium, ...(root ? ["--no-sandbox"] : [])];
    const client = new Client(bin("playwright-mcp"), flags);
    await client.start();
    await client.text("browser_navigate", { url });
    await client.text("browser_wait_for", { time: 2 });
    const console_ = await client.text("browser_console_messages", { level: "debug" });
    const network = await client.text("browser_network_requests", { static: true });
    return { client, console_, network };
  },

  async "chrome-devtools"(url) {
    const sandbox = root ? ["--chromeArg=--no-sandbox"] : [];
    const client = new Client(bin("chrome-devtools-mcp"), ["--headless", "--isolated", "--executablePath", chromium, ...sandbox]);
    await client.start();
    const pageId = Number(/^(\d+):/m.exec(await client.text("list_pages", {}))[1]);
    await client.text("navigate_page", { pageId, url });
    await client.text("evaluate_script", { pageId, function: "() => new Promise((done) => setTimeout(done, 2000))" });
    const console_ = await client.text("list_console_messages", { pageId });
    const network = await client.text("list_network_requests", { pageId });
    return { client, console_, network };
  },
};

const ours = (form) => async (url, program) => {
  const data = mkdtempSync(join(tmpdir(), "pageledger-economy-"));
  const sandbox = root ? ["--no-chromium-sandbox"] : [];
  const client = new Client(program, ["serve", "--data-dir", data, "--text", form, ...sandbox]);
  await client.start();
  const launched = await client.text("launch_session", { slug: "economy" });
  const session_id = /session_id"?: ?"?(economy-\w+)/.exec(launched)[1];
  await client.text("navigate", { session_id, url });
  await client.text("evaluate", { session_id, expression: "new Promise((done) => setTimeout(done, 2000))" });
  const console_ = await client.text("list_console_messages", { session_id, limit: 500 });
  const network = await client.text("list_network_requests", { session_id, limit: 500 });
  return { client, console_, network };
};

/** How much of what must be told is told. */
const told = (console_, network) => {
  const numbers = Array.from({ length: COUNT }, (_, n) => n);
  const line = [(n) => `item ${n} added`, (n) => `session ${n} refreshed`, (n) => `items/${n}: `, (n) => `load item ${n}:`];
  const lines = numbers.filter((n) => console_.includes(line[n % 4](n))).length;
  // Where addresses begin with what was said before, the rest is told.
  const requests = numbers.filter((n) => new RegExp(`[/ ]${n}\\?fields=name,price`).test(network)).length;
  return { lines, requests };
};

await new Promise((ready) => site.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${site.address().port}/`;
const servers = { ...peers, "pageledger json": ours("json"), "pageledger compact": ours("compact") };
const rows = {};
for (const [name, measure] of Object.entries(servers)) {
  const { client, console_, network } = await measure(url, process.argv[2]);
  client.stop();
  const [lines, list] = [console_, network].map((text) => Buffer.byteLength(text));
  rows[name] = { console: lines, "beside the texts": lines - TEXT_BYTES, network: list, ...told(console_, network) };
  if (process.env.SHOW) process.stdout.write(`== ${name}\n${console_.slice(0, 1500)}\n...\n${network.slice(0, 1500)}\n...\n`);
}
site.close();
console.table(rows);
const incomplete = Object.entries(rows).filter(([, row]) => row.lines < COUNT || row.requests < COUNT);
if (incomplete.length > 0) console.log(`not told whole: ${incomplete.map(([name]) => name).join(", ")}`);
process.exit(rows["pageledger compact"].lines + rows["pageledger compact"].requests < 2 * COUNT ? 1 : 0);
