/** Requests through the server that does not have the workload. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket } from "ws";
import type { LogPages } from "../answers/body.ts";
import { TEST_KEY } from "../platform.ts";
import type { Cluster } from "./cluster.ts";
import type { Member } from "./member.ts";
import { deploy, deployed, makeSandbox, run, until } from "./use.ts";

const headers = { "x-service-authorization": `Bearer ${TEST_KEY}` };
const SERVES = 'node -e \'require("http").createServer((q, s) => s.end("preview of " + q.url)).listen(3000)\'';

export function throughAny(get: () => Cluster<"a" | "b">): void {
  test("commands, files, terminals, ports and previews of a sandbox through the other server", async () => {
    const { a, b } = get().members;
    await makeSandbox(a, "far", { runtime: { memory: 256, ports: [{ target: 3000 }] } });
    assert.equal(await run(b, "far", "echo written > /tmp/file; cat /tmp/file"), "written");
    await sendsFiles(b, "far");
    assert.match(await typed(b, "far", "echo $((6 * 7))\n", /42/), /42/);
    await servesPorts(a, b, "far");
    await tellsLogs(a, b, "far");
    assert.equal((await b.call("DELETE", "/sandboxes/far")).status, 200);
    await until(
      () => a.running().map(({ name }) => name),
      (names) => !names.includes("far"),
    );
  });

  test("code that was sent to one server runs, whichever server is asked", async () => {
    const { a, b } = get().members;
    await deploy(a, b, "agents/echo", "hello");
    assert.equal((await deployed(b, "agents/echo")).status, "DEPLOYED");
    const said = await Promise.all(
      Array.from({ length: 16 }, async (_, n) => {
        const answer = await (n % 2 ? a : b).ask("agents/echo");
        return `${answer.status} ${await answer.text()}`;
      }),
    );
    assert.deepEqual(new Set(said), new Set(["200 hello"]));
  });
}

/** Both servers answer with the lines that the sandbox wrote at its own node. */
async function tellsLogs(owner: Member, through: Member, name: string): Promise<void> {
  await run(owner, name, "echo a line for the log");
  const lines = async (at: Member): Promise<string[]> => {
    const { body } = await at.call<LogPages>("GET", `/observability/logs?resourceType=sandboxes&workloadIds=${name}`);
    return (body[name]?.logs ?? []).map(({ message }) => message);
  };
  const isThere = (seen: string[]): boolean => seen.includes("a line for the log");
  await until(() => lines(owner), isThere);
  await until(() => lines(through), isThere);
}

/** More bytes than buffers on the way hold. */
async function sendsFiles(through: Member, name: string): Promise<void> {
  const bytes = Buffer.alloc(3_000_000, "0123456789abcdef");
  const path = `sandboxes/${name}/filesystem/tmp/large`;
  const form = new FormData();
  form.append("file", new Blob([bytes]), "large");
  const sent = await through.ask(path, { method: "PUT", body: form });
  assert.equal(sent.status, 200, await sent.text());
  const read = await through.ask(`${path}?download=true`, { headers: { accept: "application/octet-stream" } });
  assert.equal(read.status, 200);
  assert.ok(Buffer.from(await read.arrayBuffer()).equals(bytes), "the file came back as it was sent");
}

/** Types into a terminal until the screen shows the pattern. */
async function typed(through: Member, name: string, keys: string, shows: RegExp): Promise<string> {
  const address = `${through.url.replace("http", "ws")}/main/sandboxes/${name}/terminal/ws`;
  const socket = new WebSocket(address, { headers });
  try {
    await once(socket, "open");
    let screen = "";
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`the terminal closed after ${screen}`)));
    socket.on("message", (message) => {
      screen += (JSON.parse(String(message)) as { data?: string }).data ?? "";
      if (shows.test(screen)) resolve(screen);
    });
    socket.send(JSON.stringify({ type: "input", data: keys }));
    return await promise;
  } finally {
    socket.terminate();
  }
}

async function servesPorts(owner: Member, through: Member, name: string): Promise<void> {
  await run(owner, name, `(${SERVES} > /dev/null 2>&1 &)`);
  const answer = async (path: string): Promise<string> => {
    const { status, text } = await through.ask(path).then(async (r) => ({ status: r.status, text: await r.text() }));
    return `${status} ${text}`;
  };
  await until(
    () => answer(`sandboxes/${name}/port/3000/x`),
    (said) => said === "200 preview of /x",
  );
  const body = { metadata: { name: "web" }, spec: { port: 3000, public: true } };
  const made = await owner.call("POST", `/sandboxes/${name}/previews`, { body });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const { pathname } = new URL(made.body.spec.url);
  const seen = await fetch(new URL(`${pathname}/page`, through.url));
  assert.deepEqual([seen.status, await seen.text()], [200, "preview of /page"]);
}
