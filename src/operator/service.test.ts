import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { installService, uninstallService, unitText } from "./service.ts";

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-units-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("a service is written, enabled and started, and goes without a trace", async (t) => {
  const folder = folderOf(t);
  const told: string[] = [];
  const systemctl = async (...args: string[]): Promise<void> => void told.push(args.join(" "));
  const options = { data: "/srv/a b", folder, writeOnly: false, systemctl };
  await installService(options);
  await installService(options);
  const text = readFileSync(join(folder, "berth.service"), "utf8");
  assert.match(text, /^Environment="BERTH_DATA=\/srv\/a b"$/m);
  assert.match(text, /^KillMode=process$/m);
  assert.match(text, /^Delegate=yes$/m);
  assert.doesNotMatch(text, /\/opt\/berth/);
  await uninstallService(options);
  assert.ok(!existsSync(join(folder, "berth.service")));
  const install = ["daemon-reload", "enable berth.service", "restart berth.service"];
  assert.deepEqual(told, [...install, ...install, "disable --now berth.service", "daemon-reload"]);
  assert.match((await uninstallService(options))[0] ?? "", /there is no/);
});

test("a unit that somebody else wrote is neither replaced nor removed", async (t) => {
  const folder = folderOf(t);
  const file = join(folder, "berth.service");
  writeFileSync(file, "[Service]\n");
  const options = { data: "/srv/berth", folder, writeOnly: true };
  await assert.rejects(installService(options), /was not written by this command/);
  await assert.rejects(uninstallService(options), /was not written by this command/);
  assert.equal(readFileSync(file, "utf8"), "[Service]\n");
  await installService({ ...options, force: true });
  assert.equal(readFileSync(file, "utf8"), unitText("/srv/berth"));
});

const noAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0 ? false : "needs systemd-analyze";

test("systemd understands every line", { skip: noAnalyze }, async (t) => {
  const folder = folderOf(t);
  await installService({ data: "/srv/100% full", folder, writeOnly: true });
  const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", join(folder, "berth.service")], {
    encoding: "utf8",
  });
  const about = `${stdout}${stderr}`.split("\n").filter((line) => line.includes("berth.service:"));
  assert.deepEqual(about, []);
});

test("a folder in which no folder can be made is refused at once", { skip: !existsSync("/proc/self") }, async () => {
  const options = { data: "/srv/berth", folder: "/proc/nope/units", writeOnly: true };
  await assert.rejects(installService(options), /folder of units .* cannot be used/);
});
