// A program written for E2B: nothing in it knows of another platform. The addresses and the key are in its environment.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { Sandbox as Interpreter } from "@e2b/code-interpreter";
import { BuildError, CommandExitError, FileNotFoundError, Sandbox, Template } from "e2b";

const box = await Sandbox.create({ metadata: { user: "ann" }, envs: { GREETING: "hello" }, timeoutMs: 300_000 });
try {
  await commands();
  await files();
  await signedFiles();
  await lifetime();
  await terminal();
  await copies();
} finally {
  assert.equal(await box.kill(), true);
}
assert.equal(await box.kill(), false);
assert.equal(await box.isRunning(), false);
await interpreter();
await templates();

async function commands() {
  const told = [];
  const { stdout, stderr, exitCode } = await box.commands.run('echo "$GREETING $MORE"; echo no >&2; pwd', {
    envs: { MORE: "there" },
    cwd: "/tmp",
    onStdout: (text) => void told.push(text),
  });
  assert.deepEqual([stdout, stderr, exitCode], ["hello there\n/tmp\n", "no\n", 0]);
  assert.equal(told.join(""), stdout);
  await assert.rejects(box.commands.run("echo half; exit 3"), (error) => {
    assert.ok(error instanceof CommandExitError);
    assert.deepEqual([error.exitCode, error.stdout], [3, "half\n"]);
    return true;
  });

  const cat = await box.commands.run("cat", { background: true, stdin: true });
  assert.deepEqual(
    (await box.commands.list()).map(({ pid, cmd, args }) => [pid, cmd, args]),
    [[cat.pid, "/bin/bash", ["-l", "-c", "cat"]]],
  );
  const second = await box.commands.connect(cat.pid);
  await box.commands.sendStdin(cat.pid, "typed\n");
  await box.commands.closeStdin(cat.pid);
  assert.equal((await cat.wait()).stdout, "typed\n");
  assert.equal((await second.wait()).stdout, "typed\n");

  const sleeping = await box.commands.run("sleep 1000", { background: true });
  assert.equal(await sleeping.kill(), true);
  await assert.rejects(sleeping.wait(), { name: "CommandExitError", message: "signal: killed" });
  assert.equal(await box.commands.kill(sleeping.pid), false);
  await assert.rejects(box.commands.run("sleep 1000", { timeoutMs: 100 }), { name: "TimeoutError" });
  await assert.rejects(box.commands.run("true", { cwd: "/nowhere" }), { name: "InvalidArgumentError" });
  await assert.rejects(box.commands.run("true", { user: "nobody-here" }), { name: "AuthenticationError" });
}

async function files() {
  assert.equal((await box.files.write("/tmp/new/a.txt", "text")).path, "/tmp/new/a.txt");
  assert.equal(await box.files.read("/tmp/new/a.txt"), "text");
  await box.files.write("/tmp/new/empty", "");
  assert.equal(await box.files.read("/tmp/new/empty"), "");
  const bytes = new Uint8Array([0, 255, 13, 10]);
  await box.files.write([
    { path: "/tmp/new/b.bin", data: bytes.buffer },
    { path: "/tmp/new/c.txt", data: "c" },
  ]);
  assert.deepEqual(await box.files.read("/tmp/new/b.bin", { format: "bytes" }), bytes);
  await box.files.write("/tmp/new/zipped.txt", "was zipped on its way", { gzip: true });
  assert.equal(await box.files.read("/tmp/new/zipped.txt"), "was zipped on its way");
  await box.files.write("relative.txt", "where commands begin");
  assert.equal((await box.commands.run("cat relative.txt")).stdout, "where commands begin");

  assert.equal(await box.files.makeDir("/tmp/new/sub/deep"), true);
  assert.equal(await box.files.makeDir("/tmp/new/sub/deep"), false);
  const names = async (depth) => (await box.files.list("/tmp/new", { depth })).map(({ path }) => path.slice(9));
  assert.deepEqual(await names(1), ["a.txt", "b.bin", "c.txt", "empty", "sub", "zipped.txt"]);
  assert.ok((await names(2)).includes("sub/deep"));
  const { name, type, size, permissions, owner } = await box.files.getInfo("/tmp/new/a.txt");
  assert.deepEqual([name, type, size, permissions], ["a.txt", "file", 4, "-rw-r--r--"]);
  assert.equal(owner, (await box.commands.run("id -un")).stdout.trim());
  assert.equal((await box.files.rename("/tmp/new/a.txt", "/tmp/new/sub/a.txt")).path, "/tmp/new/sub/a.txt");
  await box.files.remove("/tmp/new/sub");
  assert.equal(await box.files.exists("/tmp/new/sub/a.txt"), false);
  await assert.rejects(box.files.read("/tmp/new/none"), FileNotFoundError);

  const seen = Promise.withResolvers();
  const watch = await box.files.watchDir("/tmp/new", (event) => seen.resolve(event));
  await box.files.write("/tmp/new/watched.txt", "x");
  assert.deepEqual((({ name, type }) => ({ name, type }))(await seen.promise), { name: "watched.txt", type: "create" });
  await watch.stop();
}

/** Without an address for all sandboxes the client signs addresses below the domain. */
async function signedFiles() {
  const { E2B_SANDBOX_URL } = process.env;
  delete process.env.E2B_SANDBOX_URL;
  const signer = await Sandbox.connect(box.sandboxId);
  process.env.E2B_SANDBOX_URL = E2B_SANDBOX_URL;
  const upload = await signer.uploadUrl("/tmp/signed.txt", { useSignatureExpiration: 600 });
  const download = await signer.downloadUrl("/tmp/signed.txt");
  assert.ok(download.startsWith(`https://49983-${box.sandboxId}.${process.env.HOSTS_BELOW}/files?`));
  const form = '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nby an address\r\n--b--\r\n';
  assert.equal((await plain(upload, "POST", form)).status, 200);
  assert.deepEqual(await plain(download, "GET"), { status: 200, text: "by an address" });
  assert.equal((await plain(download.replace("signed.txt", "other.txt"), "GET")).status, 401);
}

/** The address without TLS and DNS, which are not there in a test. */
function plain(address, method, body = "") {
  const { host, port, pathname, search } = new URL(address);
  const headers = { host, ...(body && { "content-type": "multipart/form-data; boundary=b" }) };
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method, path: pathname + search, headers }, async (answer) => {
      let text = "";
      for await (const chunk of answer) text += chunk;
      resolve({ status: answer.statusCode, text });
    });
    sent.on("error", reject).end(body);
  });
}

async function lifetime() {
  assert.equal(box.getHost(3000), `3000-${box.sandboxId}.${process.env.HOSTS_BELOW}`);
  assert.equal(await box.isRunning(), true);
  await box.setTimeout(900_000);
  const { sandboxId, metadata, state, templateId, startedAt, endAt } = await box.getInfo();
  assert.deepEqual([sandboxId, metadata, state, templateId], [box.sandboxId, { user: "ann" }, "running", "base"]);
  assert.ok(endAt - startedAt >= 900_000);
  const [used] = await box.getMetrics();
  assert.ok(used.memUsed > 0 && used.memTotal >= used.memUsed && used.diskTotal > 0 && used.cpuUsedPct >= 0);
  const listed = async (user) =>
    (await Sandbox.list({ query: { metadata: { user } } }).nextItems()).map((found) => found.sandboxId);
  assert.deepEqual([await listed("ann"), await listed("bob")], [[box.sandboxId], []]);
  const again = await Sandbox.connect(box.sandboxId);
  assert.equal(await again.files.read("/tmp/new/c.txt"), "c");
  await assert.rejects(Sandbox.connect("none-main"), { name: "SandboxNotFoundError" });
  await assert.rejects(Sandbox.create({ apiKey: "wrong" }), { name: "AuthenticationError" });
}

async function terminal() {
  let shown = "";
  const typed = Promise.withResolvers();
  const decoder = new TextDecoder();
  const pty = await box.pty.create({
    cols: 90,
    rows: 20,
    onData: (bytes) => {
      shown += decoder.decode(bytes, { stream: true });
      if (shown.includes("20 90")) typed.resolve();
    },
  });
  await box.pty.sendInput(pty.pid, new TextEncoder().encode("stty size\n"));
  await typed.promise;
  await box.pty.resize(pty.pid, { cols: 100, rows: 30 });
  assert.ok((await box.commands.list()).some(({ pid }) => pid === pty.pid));
  await box.pty.sendInput(pty.pid, new TextEncoder().encode("stty size; exit 7\n"));
  await assert.rejects(pty.wait(), { exitCode: 7 });
  assert.match(shown, /30 100/);
  assert.equal(await box.pty.kill(pty.pid), false);
}

async function copies() {
  const counting = await box.commands.run("sleep 1000; echo woken", { background: true, timeoutMs: 0 });
  assert.equal(await box.pause(), true);
  assert.equal((await box.getInfo()).state, "paused");
  assert.equal(await box.pause(), false);
  await box.connect();
  assert.equal((await box.getInfo()).state, "running");
  assert.ok(
    (await box.commands.list()).some(({ pid }) => pid === counting.pid),
    "the command outlives the pause",
  );
  await box.commands.kill(counting.pid);

  const { snapshotId } = await box.createSnapshot({ name: "before" });
  assert.deepEqual(
    (await box.listSnapshots().nextItems()).map(({ names }) => names),
    [["before"]],
  );
  await box.files.write("/tmp/new/c.txt", "changed");
  const [fork] = await box.fork();
  const old = await Sandbox.create(snapshotId);
  try {
    assert.equal(await fork.files.read("/tmp/new/c.txt"), "changed");
    assert.equal(await old.files.read("/tmp/new/c.txt"), "c");
  } finally {
    await Promise.all([fork.kill(), old.kill()]);
  }
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), true);
}

async function interpreter() {
  const box = await Interpreter.create();
  try {
    // The base image has the programs of the machine that it was made from.
    const { stdout } = await box.commands.run("command -v node || true");
    if (stdout === "") return console.log("the code interpreter was not tried: there is no node");
    const language = "javascript";
    await box.runCode("globalThis.kept = 20", { language });
    const lines = [];
    const ran = await box.runCode("console.log('printed'); kept + 22", {
      language,
      onStdout: ({ line }) => void lines.push(line),
    });
    assert.deepEqual([ran.text, lines.join("").trim()], ["42", "printed"]);
    const failed = await box.runCode("throw new TypeError('no')", { language });
    assert.deepEqual([failed.error.name, failed.error.value], ["TypeError", "no"]);
    const context = await box.createCodeContext({ language });
    assert.equal((await box.runCode("typeof kept", { context })).text, "undefined");
    await box.removeCodeContext(context);
  } finally {
    await box.kill();
  }
}

async function templates() {
  mkdirSync("app/sub", { recursive: true });
  writeFileSync("app/greeting.txt", "hello");
  writeFileSync("app/sub/deep.txt", "deep");
  const template = Template({ fileContextPath: "." })
    .fromTemplate("base")
    .setEnvs({ COLOR: 'a "dark" $green' })
    .setWorkdir("/opt/my app")
    .copy("app", "copied")
    .copy("app/greeting.txt", "/etc/greeting.txt", { mode: 0o600 })
    .runCmd(['printf %s "$COLOR" > built.txt', "echo built here"]);
  assert.equal(await Template.exists("painted"), false);
  const lines = [];
  const made = await Template.build(template, "painted", { onBuildLogs: ({ message }) => void lines.push(message) });
  assert.equal(made.name, "painted");
  assert.ok(lines.join("\n").includes("built here"), lines.join("\n"));
  assert.equal(await Template.exists("painted"), true);
  const box = await Sandbox.create("painted");
  try {
    assert.equal(await box.files.read("/opt/my app/built.txt"), 'a "dark" $green');
    assert.equal(await box.files.read("/opt/my app/copied/sub/deep.txt"), "deep");
    const { stdout } = await box.commands.run("stat -c %a /etc/greeting.txt; pwd; echo $COLOR");
    assert.equal(stdout, '600\n/opt/my app\na "dark" $green\n');
  } finally {
    await box.kill();
  }
  const failing = Template().fromTemplate("painted").runCmd("echo so; exit 3");
  await assert.rejects(Template.build(failing, "broken"), (error) => {
    assert.ok(error instanceof BuildError);
    assert.match(error.message, /3/);
    return true;
  });
  const serving = Template().fromTemplate("base").setStartCmd("serve", "true");
  await assert.rejects(Template.build(serving, "serving"), /setStartCmd/);
}
