/**
 * A sandbox that keeps its people to an ordinary user (BL_SANDBOX_USER): the file API, uploads, searches, watches and
 * MCP tools may no more than that user's own programs, also through links.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { usersMissing } from "../local/machine.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";

const USER = [
  { name: "BL_SANDBOX_USER_ENABLED", value: "true" },
  { name: "BL_SANDBOX_USER", value: "user" },
];
const DENIED = /permission denied|not permitted/;

describe("the rights of BL_SANDBOX_USER", { skip: machineSkip || usersMissing }, () => {
  const suite = sandboxSuite();
  before(async () => {
    await suite.start({ standby_after: "60" });
    await suite.create("kept", { runtime: { memory: 512, envs: USER } });
    const links = "cd /home/user && ln -s /etc etc && ln -s /usr/bin/whoami who && ln -s /root root";
    assert.equal((await suite.exec("kept", links)).body.exitCode, 0);
  });
  after(() => suite.stop());
  const at = (path: string): string => `/filesystem/${encodeURIComponent(path)}`;
  const ask = (method: string, path: string, body?: unknown) => suite.inside("kept", method, path, body);
  const send = async (method: string, path: string, body?: string | FormData, type?: string) => {
    const { url, apiKey } = suite.platform();
    const answer = await fetch(`${url}/main/sandboxes/kept${path}`, {
      method,
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(90_000), // a watch that is not refused never ends
      headers: { "x-service-authorization": `Bearer ${apiKey}`, ...(type ? { "content-type": type } : {}) },
    });
    const text = await answer.text();
    return { status: answer.status, body: JSON.parse(text === "" ? "null" : text) };
  };
  const tool = async (name: string, args: object): Promise<{ isError: boolean; text: string }> => {
    const params = { name, arguments: args };
    const { body } = await ask("POST", "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params });
    return { isError: body.result?.isError === true || body.error !== undefined, text: JSON.stringify(body) };
  };
  const form = (content: string): FormData => {
    const data = new FormData();
    data.set("file", new Blob([content]), "x");
    return data;
  };

  const attacks: Record<string, () => Promise<{ status: number; body: unknown }>> = {
    "deletes a program": () => ask("DELETE", at("/usr/bin/whoami")),
    "deletes a folder of the system": () => ask("DELETE", `${at("/usr/bin")}?recursive=true`),
    "overwrites a program": () => ask("PUT", at("/usr/bin/whoami"), { content: "#!/bin/sh\n" }),
    "overwrites a program through a link": () => ask("PUT", at("/home/user/who"), { content: "#!/bin/sh\n" }),
    "replaces a program through a link": () =>
      send("PUT", at("/home/user/who"), "#!/bin/sh\n", "application/octet-stream"),
    "writes a rule for sudo": () =>
      ask("PUT", at("/etc/sudoers.d/evil"), { content: "user ALL=(ALL) NOPASSWD: ALL\n" }),
    "makes a folder": () => ask("PUT", at("/etc/evil"), { isDirectory: true }),
    "writes through a link": () => ask("PUT", at("/home/user/etc/evil"), { content: "x" }),
    "uploads a file": () => send("PUT", at("/etc/evil"), "x", "application/octet-stream"),
    "uploads a form": () => send("PUT", at("/etc/evil"), form("x")),
    "writes a tree": () => ask("PUT", `/filesystem/tree/${encodeURIComponent("/etc")}`, { files: { evil: "x" } }),
    "uploads in parts": () => ask("POST", `/filesystem-multipart/initiate/${encodeURIComponent("/etc/evil")}`, {}),
    "reads a private file": () => ask("GET", at("/root/.bashrc")),
    "reads a private file through a link": () => ask("GET", at("/home/user/root/.bashrc")),
    "lists a private folder": () => ask("GET", at("/root")),
    "watches a private folder": () => send("GET", "/watch/filesystem/%2Froot"),
  };
  for (const [what, attack] of Object.entries(attacks))
    test(`refused: ${what}`, async () => {
      const { status, body } = await attack();
      assert.equal(status, 422, JSON.stringify(body));
      assert.match(JSON.stringify(body), DENIED);
    });

  test("refused: the same by the API of E2B's clients", async () => {
    const rpc = (method: string, message: object) => ask("POST", `/e2b/filesystem.Filesystem/${method}`, message);
    const cases: Record<string, () => Promise<{ status: number; body: unknown }>> = {
      "reads a private file": () => ask("GET", "/e2b/files?path=/root/.bashrc"),
      "uploads a file": () => send("POST", "/e2b/files?path=/etc/evil", "x", "application/octet-stream"),
      "uploads a form": () => send("POST", "/e2b/files?path=/home/user/etc/evil", form("x")),
      "lists a private folder": () => rpc("ListDir", { path: "/root" }),
      "moves a program": () => rpc("Move", { source: "/usr/bin/whoami", destination: "/home/user/w" }),
      "removes a program": () => rpc("Remove", { path: "/usr/bin/whoami" }),
      "makes a folder": () => rpc("MakeDir", { path: "/etc/evil" }),
      "reads as root": () => ask("GET", "/e2b/files?path=/root/.bashrc&username=root"),
    };
    for (const [what, attack] of Object.entries(cases)) {
      const { status, body } = await attack();
      assert.ok(status === 400 || status === 403, `${what}: ${status} ${JSON.stringify(body)}`);
      assert.match(JSON.stringify(body), /permission denied|not permitted|cannot change to/, what);
    }
    const started = await fetch(`${suite.platform().url}/main/sandboxes/kept/e2b/process.Process/Start`, {
      method: "POST",
      headers: {
        "x-service-authorization": `Bearer ${suite.platform().apiKey}`,
        authorization: `Basic ${btoa("root:")}`,
        "content-type": "application/connect+json",
      },
      body: framed({ process: { cmd: "/bin/sh", args: ["-c", "id -u"] } }),
    });
    assert.match(await started.text(), /permission_denied.*cannot change to/);
  });

  test("refused: the same by MCP tools", async () => {
    const cases: [string, object][] = [
      ["fsDeleteFileOrDirectory", { path: "/usr/bin/whoami" }],
      ["fsWriteFile", { path: "/etc/sudoers.d/evil", content: "x" }],
      ["fsWriteFile", { path: "/home/user/who", content: "x" }],
      ["fsReadFile", { path: "/root/.bashrc" }],
      ["fsListDirectory", { path: "/root" }],
    ];
    for (const [name, args] of cases) {
      const { isError, text } = await tool(name, args);
      assert.ok(isError && DENIED.test(text), `${name} ${text}`);
    }
  });

  test("searches see nothing of a private folder, and nothing was changed", async () => {
    for (const path of ["/filesystem-find/%2Froot", "/filesystem-content-search/%2Froot?query=bash"])
      assert.doesNotMatch(JSON.stringify((await ask("GET", path)).body), /\.bashrc/);
    const look = "test -x /usr/bin/whoami && whoami; ls -d /etc/evil /etc/sudoers.d 2>/dev/null; echo $USER $LOGNAME";
    assert.equal((await suite.exec("kept", look)).body.stdout, "user\nuser user\n");
  });

  test("what the user may do works as before", async () => {
    const home = "/home/user/project";
    assert.equal((await ask("PUT", at(`${home}/a.txt`), { content: "hello" })).status, 200);
    assert.equal((await send("PUT", at(`${home}/b.bin`), "bytes", "application/octet-stream")).status, 200);
    assert.equal((await send("PUT", at(`${home}/c.txt`), form("form"))).status, 200);
    const parts = `/filesystem-multipart/initiate/${encodeURIComponent(`${home}/d.bin`)}`;
    const { uploadId } = (await ask("POST", parts, {})).body;
    const part = await send("PUT", `/filesystem-multipart/${uploadId}/part?partNumber=1`, form("part"));
    assert.equal(part.status, 200, JSON.stringify(part.body));
    const done = await ask("POST", `/filesystem-multipart/${uploadId}/complete`, {
      parts: [{ partNumber: 1, etag: part.body.etag }],
    });
    assert.equal(done.status, 200, JSON.stringify(done.body));
    assert.ok(!(await tool("fsWriteFile", { path: `${home}/e.txt`, content: "tool" })).isError);
    const { body } = await ask("GET", at(home));
    assert.deepEqual(
      body.files.map(({ name, owner, group }) => `${name} ${owner}:${group}`),
      ["a.txt", "b.bin", "c.txt", "d.bin", "e.txt"].map((name) => `${name} user:user`),
    );
    assert.equal((await ask("GET", at(`${home}/a.txt`))).body.content, "hello");
    assert.match(JSON.stringify((await ask("GET", `/filesystem-find/${encodeURIComponent(home)}`)).body), /d\.bin/);
    assert.equal((await ask("DELETE", `${at(home)}?recursive=true`)).status, 200);
    assert.equal((await ask("GET", at(home))).status, 404);
    assert.equal((await ask("PUT", at("/tmp/relative.txt"), { content: "x" })).status, 200);
  });
});

/** A message of a stream in the Connect protocol. */
function framed(message: object): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}
