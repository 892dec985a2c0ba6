/** A backup with files of a server that runs, restored on "another machine": a data folder of another name. */
import assert from "node:assert/strict";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { loadConfig } from "../../src/config.ts";
import { backupEverything, type Teller } from "../../src/operator/backup/everything.ts";
import { restoreEverything } from "../../src/operator/backup/restore-everything.ts";
import { verifyBackup } from "../../src/operator/backup/verify.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";

const quiet: Teller = { progress: () => {}, note: () => {} };
const sentIn = (lines: string[]): number => {
  const [, amount = "", unit = ""] = /, ([\d.]+) (\w+) sent/.exec(lines[0] ?? "") ?? [];
  return Number(amount) * 1024 ** ["B", "KB", "MB", "GB"].indexOf(unit);
};

describe("a backup with files on this machine", { skip: machineSkip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-backup-"));
  const [from, to, target] = [join(folder, "from"), join(folder, "to"), join(folder, "backups")];
  const source = sandboxSuite(from);
  const restored = sandboxSuite(to);
  const configOf = (data: string) => loadConfig({ flags: { data }, env: {} });
  const backup = () =>
    backupEverything({ config: configOf(from), target, keep: undefined, skipLost: false, tell: quiet });
  let driveUid = "";
  before(async () => {
    await source.start({ standby_after: "60" });
    const call = (method: string, path: string, body: object) => source.platform().call(method, path, { body });
    await call("POST", "/volumes", { metadata: { name: "disk" }, spec: { size: 64 } });
    driveUid = (await call("POST", "/drives", { metadata: { name: "shared" }, spec: {} })).body.metadata.uid;
    await source.create("box", { volumes: [{ name: "disk", mountPath: "/disk" }] });
    const wrote = await source.exec(
      "box",
      "echo root > /root/note; ln -s /etc/passwd /root/link; rm /etc/shells; dd if=/dev/urandom of=/disk/random bs=1M count=8 2>/dev/null; sync; sha256sum < /disk/random",
    );
    sum = wrote.body.stdout;
    const drive = join(from, "runtime", "drives", driveUid);
    mkdirSync(join(drive, "deep"), { recursive: true });
    writeFileSync(join(drive, "deep", "file"), "of the drive");
  });
  let sum = "";
  after(async () => {
    await source.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("sends everything once, and then only what changed", async () => {
    const first = sentIn(await backup());
    assert.ok(first >= 8 * 1024 ** 2, `${first} bytes`);
    await source.exec("box", "echo more >> /root/note; sync");
    const second = sentIn(await backup());
    assert.ok(second < first / 2, `${second} of ${first} bytes were sent again`);
    assert.deepEqual(readdirSync(join(from, "runtime", "backup-work")), []);
    const [line = ""] = await verifyBackup({ config: configOf(from), target, id: undefined, tell: quiet });
    assert.match(line, /whole, \d+ chunks/);
    const all = readdirSync(target, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    for (const entry of all)
      assert.ok(!readFileSync(join(entry.parentPath, entry.name)).includes("of the drive"), "everything is sealed");
  });

  test("a machine that got it goes on with sandboxes, volumes and drives", async (t) => {
    mkdirSync(to);
    copyFileSync(join(from, "secret.key"), join(to, "secret.key"));
    const chosen = { id: undefined, node: undefined, filesOnly: false, force: false };
    const lines = await restoreEverything({ config: configOf(to), target, tell: quiet, ...chosen });
    assert.match(lines.join("\n"), /restored \d+ folders of node .* and \d+ rows/);
    assert.ok(!existsSync(join(to, "restoring")));
    await restored.start({ standby_after: "60" });
    t.after(() => restored.stop());
    const inside = await restored.exec(
      "box",
      "cat /root/note; readlink /root/link; ls /etc/shells; sha256sum < /disk/random",
    );
    assert.equal(inside.body.stdout, `root\nmore\n/etc/passwd\n${sum}`, JSON.stringify(inside.body));
    assert.equal(readFileSync(join(to, "runtime", "drives", driveUid, "deep", "file"), "utf8"), "of the drive");
    const again = restoreEverything({ config: configOf(to), target, tell: quiet, ...chosen });
    await assert.rejects(again, /in use by another Berth/);
  });
});
