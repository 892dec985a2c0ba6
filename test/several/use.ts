/** What people do with a platform of several servers: the same requests, through any of them. */
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import type { Answer } from "../platform.ts";
import { projectArchive } from "../project-archive.ts";
import type { Member } from "./member.ts";

/** Far longer than anything here takes, also on a busy machine. */
const PATIENCE_MS = 90_000;
const LOOK_MS = 100;

/** Looks until `done` holds; returns what it saw last. */
export async function until<T>(look: () => T | Promise<T>, done: (seen: T) => boolean): Promise<T> {
  const giveUp = Date.now() + PATIENCE_MS;
  for (;;) {
    const seen = await look();
    if (done(seen)) return seen;
    if (Date.now() > giveUp) throw new Error(`still ${JSON.stringify(seen)}`);
    await pause(LOOK_MS);
  }
}

export async function makeSandbox(at: Member, name: string, spec: object = {}): Promise<Answer["body"]> {
  const body = { metadata: { name }, spec: { runtime: { memory: 256 }, ...spec } };
  const made = await at.call("POST", "/sandboxes", { body });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  return made.body;
}

export const sandboxOf = async (at: Member, name: string): Promise<Answer["body"]> =>
  (await at.call("GET", `/sandboxes/${name}`)).body;

/** Runs a command in a sandbox through one server; its status and output. */
export async function exec(through: Member, name: string, command: string): Promise<{ status: number; said: string }> {
  const answer = await through.ask(`sandboxes/${name}/process`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ command, waitForCompletion: true, timeout: 60 }),
  });
  const text = await answer.text();
  return { status: answer.status, said: answer.status === 200 ? String(JSON.parse(text).logs).trim() : text };
}

/** The output of a command that must succeed. */
export async function run(through: Member, name: string, command: string): Promise<string> {
  const { status, said } = await exec(through, name, command);
  assert.equal(status, 200, `${command} in ${name} through ${through.name}: ${said}`);
  return said;
}

/** Marks a sandbox with a file and a process, which it has as long as it is the same. */
export const mark = (through: Member, name: string): Promise<string> =>
  run(through, name, `echo ${name} > /kept; (sleep 100000 > /dev/null 2>&1 & echo $! > /pid); cat /kept`);

/** What is left of the marks, such as "box alive". */
export const markOf = (through: Member, name: string): Promise<string> =>
  run(through, name, "echo $(cat /kept) $(kill -0 $(cat /pid) && echo alive)");

/** Makes an agent or the like ("agents/echo") at one server and sends its code through another. */
export async function deploy(at: Member, send: Member, path: string, word: string, spec: object = {}): Promise<void> {
  const [plural, name] = path.split("/");
  const body = { metadata: { name }, spec: { runtime: { memory: 256 }, ...spec } };
  const there = (await at.call("GET", `/${path}`)).status === 200;
  const made = await at.call(there ? "PUT" : "POST", `/${there ? path : plural}?upload=true`, { body });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const upload = new URL(made.headers.get("x-service-upload-url") ?? assert.fail("no address for the code"));
  const sent = await fetch(new URL(upload.pathname + upload.search, send.url), {
    method: "PUT",
    body: projectArchive(says(word)),
    headers: { "content-type": "application/gzip" },
  });
  assert.equal(sent.status, 200, await sent.text());
}

/** A program that answers with its word. */
const says = (word: string): Record<string, string> => ({
  "index.js": `
    require("node:http").createServer((request, response) => response.end("${word}"))
      .listen(process.env.PORT, process.env.HOST);`,
});

/** Waits until the code of "agents/echo" runs or has failed. */
export const deployed = (through: Member, path: string): Promise<Answer["body"]> =>
  until(
    async () => (await through.call("GET", `/${path}`)).body,
    ({ status }) => status === "DEPLOYED" || status === "FAILED",
  );

/** The word of deployed code, once it answers. */
export const wordOf = async (through: Member, path: string): Promise<string> => {
  const { text } = await until(
    async () => {
      const answer = await through.ask(path);
      return { status: answer.status, text: await answer.text() };
    },
    ({ status }) => status === 200,
  );
  return text;
};
