/**
 * A workload is copied with its memory, and the copy tries to pass for its source: by programs that already ran there,
 * by what the daemon remembers, by files of the shared folder that lead elsewhere.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../../src/node/capabilities/need.ts";
import { PLATFORM_DOOR_PORT, type WorkloadSpec } from "../../src/node/workload.ts";
import { RUNSC_MISSING, testRunsc } from "../gvisor/binary.ts";
import { LocalMachine, localDriverMissing, tracesOf } from "../local/machine.ts";
import { run } from "../local/run.ts";

const runsc = localDriverMissing ? null : testRunsc();
const spec = (uid: string, more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  ...{ uid, name: uid, image: "berth/base-image:latest", limits: { memoryMb: 256, cpus: 1 } },
  ...{ network: "outbound", isolation: "vm-like", env: { BL_NAME: uid, TOKEN: `token-of-${uid}` } },
  ...more,
});

/** Asks the platform again whenever its file is there, from the same process in the source and in every copy. */
const CALLER = `node -e '
  const { existsSync, rmSync, writeFileSync } = require("fs");
  setInterval(() => {
    if (!existsSync("/ask")) return;
    rmSync("/ask");
    fetch("http://127.0.0.1:${PLATFORM_DOOR_PORT}/", { headers: { connection: "close" } })
      .then((answer) => answer.text()).then((text) => writeFileSync("/answer", text));
  }, 20);
'`;
const ASK = "rm -f /answer; touch /ask; until test -s /answer; do sleep 0.02; done; cat /answer";

test("a copy with the memory of another workload never calls or answers as that one", {
  skip: runsc === null ? RUNSC_MISSING : false,
  timeout: 300_000,
}, async () => {
  const machine = new LocalMachine();
  const driver = await machine.open({
    runsc: runsc ?? "",
    outbound: "proxy",
    onPlatform: (uid, socket) =>
      socket.resume().end(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${uid.length}\r\n\r\n${uid}`),
  });
  const source = await driver.create(spec("source"));
  await run(source, `${CALLER} > /dev/null 2>&1 & ln -s /etc/passwd /run/berth/config.json; ln -s / /run/berth/out`);
  assert.equal((await run(source, ASK)).output, "source");
  const taking = await need(driver, "memorySnapshots");
  await taking.take("source", "instant");

  const resumed = { snapshot: "instant", resumed: true } as const;
  const copy = await driver.create(spec("copy", resumed));
  assert.equal((await run(copy, ASK)).output, "copy", "the process of the source calls as the copy");
  assert.equal((await run(source, ASK)).output, "source");
  assert.equal((await run(copy, "echo $BL_NAME $TOKEN")).output, "copy token-of-copy\n");
  assert.equal((await run(copy, "grep -c token-of-source /run/berth/host/config.json")).output, "0\n");
  await driver.destroy("source");
  assert.equal((await run(copy, ASK)).output, "copy", "a copy does not need its source");
  await assert.rejects(driver.create(spec("weak", { ...resumed, isolation: "mapped" })), { code: "unprocessable" });
  const mapped = await driver.create(spec("mapped", { isolation: "mapped" }));
  await assert.rejects(taking.take("mapped", "none"), { code: "unprocessable", message: /'mapped'/ });
  assert.equal(mapped.grade, "mapped");
  await driver.stop("kill");
  assert.deepEqual(tracesOf(machine.dataDir), []);
  machine.dispose();
});
