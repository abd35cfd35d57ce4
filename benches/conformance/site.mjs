// The pages of the cases, as the tests' own site serves them: two ports, of which one goes by another
// name, make two sites. What a page is made of must stay the same in tests/site/conformance.rs.
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";

const fixtures = new URL("../../tests/fixtures/conformance/", import.meta.url);
const prelude = readFileSync(new URL("prelude.html", fixtures), "utf8");
const text = (lines) => (Array.isArray(lines) ? lines.join("\n") : lines);

/** Every case with the name of its group, in the order of the files. */
export const cases = readdirSync(fixtures)
  .filter((name) => name.endsWith(".json"))
  .sort()
  .flatMap((file) => {
    const group = file.replace(".json", "");
    return JSON.parse(readFileSync(new URL(file, fixtures), "utf8")).map((one) => ({ ...one, group }));
  });

const answer = (path) => {
  const [, group, name, file] = path.match(/^\/conformance\/(\w+)\/(\w+)\/(.*)$/) || [];
  const one = cases.find((other) => other.group === group && other.name === name);
  if (!one) return null;
  if (!file) return { type: "text/html", body: prelude + text(one.page) };
  const part = one.files?.[file];
  if (part === undefined) return null;
  if (typeof part === "string" || Array.isArray(part)) return { type: "text/html", body: prelude + text(part) };
  return part;
};

const listen = (handler) => new Promise((done) => {
  const server = createServer(handler);
  server.listen(0, "127.0.0.1", () => done(server));
});

/** Serves until the process ends; gives the address of a case's page on the first origin. */
export const serve = async () => {
  const origins = [];
  const filled = (body, path) => {
    const home = path.slice(0, path.lastIndexOf("/"));
    return body.replaceAll("{{here}}", origins[0] + home).replaceAll("{{there}}", origins[1] + home);
  };
  const handler = (request, response) => {
    const path = request.url.split("?")[0];
    const found = answer(path);
    if (!found) {
      response.writeHead(404).end("nothing here\n");
      return;
    }
    const headers = { "Content-Type": `${found.type}; charset=utf-8` };
    if (found.disposition) headers["Content-Disposition"] = found.disposition;
    response.writeHead(200, headers).end(filled(found.body, path));
  };
  for (const host of ["127.0.0.1", "localhost"]) {
    const server = await listen(handler);
    server.unref();
    origins.push(`http://${host}:${server.address().port}`);
  }
  return (one) => `${origins[0]}/conformance/${one.group}/${one.name}`;
};
