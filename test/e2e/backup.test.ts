/** Backups made and restored by the real command, from and into both databases, while a server is running. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { type Ended, runBerth } from "../berth-process.ts";
import { type TestPlace, testDatabases } from "../databases.ts";
import { type Answer, type CallOptions, startTestPlatform, type TestPlatform } from "../platform.ts";
import { eventually } from "../sandboxd-harness.ts";

const databases = await testDatabases();
const folder = mkdtempSync(join(tmpdir(), "berth-backups-"));
after(async () => {
  await databases.stop();
  rmSync(folder, { recursive: true });
});

type Place = TestPlace;

const call = (on: TestPlatform, method: string, path: string, options: CallOptions = {}): Promise<Answer> =>
  on.call(method, path, { workspace: "main", ...options });

const berth = (place: Place, ...args: string[]): Promise<Ended> =>
  runBerth(args, {
    env: { BERTH_DATA: place.dataDir, ...(place.databaseUrl ? { DATABASE_URL: place.databaseUrl } : {}) },
  });

/** Another file with these lines and a fitting checksum, as somebody who knows the format would forge it. */
function forge(file: string, change: (lines: string[]) => string[]): string {
  const lines = change(gunzipSync(readFileSync(file)).toString().trimEnd().split("\n"));
  const body = `${lines.slice(0, -1).join("\n")}\n`;
  const { end } = JSON.parse(lines.at(-1) ?? "") as { end: { rows: object } };
  const last = JSON.stringify({ end: { ...end, sha256: createHash("sha256").update(body).digest("hex") } });
  const forged = join(folder, "forged.gz");
  writeFileSync(forged, gzipSync(`${body}${last}\n`));
  return forged;
}

for (const source of databases.all) {
  describe(`a backup of ${source.name}`, { skip: source.skip }, () => {
    const file = join(folder, `${source.name}.gz`);
    const keyed = join(folder, `${source.name}-with-key.gz`);
    let place: Place;
    let platform: TestPlatform;

    before(async () => {
      place = await source.fresh();
      platform = await startTestPlatform(place);
      await call(platform, "POST", "/workspaces", { body: { name: "second" } });
      for (let n = 0; n < 30; n += 1)
        await call(platform, "POST", "/drives", {
          body: { metadata: { name: `drive-${n}`, labels: { team: `t${n % 3}` } }, spec: {} },
        });
      const env = { name: "TOKEN", value: "very-secret", secret: true };
      const made = await call(platform, "POST", "/agents", {
        body: { metadata: { name: "agent" }, spec: { runtime: { image: "x", envs: [env] } } },
      });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const isSettled = async () => (await call(platform, "GET", "/agents/agent")).body.status === "FAILED";
      await eventually(isSettled, "nothing that would change after the backup");
      const ended = await berth(place, "backup", file);
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(ended.stdout, /secret\.key\. Keep a copy of that elsewhere, or use --with-key/);
      assert.equal((await berth(place, "backup", keyed, "--with-key")).code, 0);
    });
    after(async () => {
      await platform.stop();
      place.remove();
    });

    test("is for its owner only, and never holds a secret in clear", () => {
      assert.equal(statSync(file).mode & 0o777, 0o600);
      const text = gunzipSync(readFileSync(file)).toString();
      assert.ok(text.includes("drive-29"));
      const key = readFileSync(join(place.dataDir, "secret.key"), "utf8");
      for (const secret of ["very-secret", key, platform.apiKey]) assert.ok(!text.includes(secret));
      assert.ok(gunzipSync(readFileSync(keyed)).toString().includes(key));
    });

    test("does not replace a file unasked", async () => {
      assert.equal((await berth(place, "backup", file)).code, 2);
      const copy = join(folder, "again.gz");
      writeFileSync(copy, "old");
      assert.equal((await berth(place, "backup", copy, "--force")).code, 0);
      assert.ok(statSync(copy).size > 1000);
    });

    for (const target of databases.all) {
      test(`is restored into an empty ${target.name}`, { skip: target.skip }, async () => {
        const to = await target.fresh();
        const ended = await berth(to, "restore", keyed);
        assert.equal(ended.code, 0, ended.stderr);
        await using restored = await startTestPlatform({ ...to, config: { api_key: "another-key-0123456789" } });
        // The admin's key of the source is valid here, and everything is as it was.
        for (const path of ["/drives?limit=200&sort=name:asc", "/agents/agent?show_secrets=true", "/workspaces"]) {
          const [before, now] = await Promise.all([call(platform, "GET", path), call(restored, "GET", path)]);
          // The server of the copy is another node, so its answers name the node that has a resource.
          const plain = (body: unknown): unknown =>
            JSON.parse(JSON.stringify(body).replaceAll(restored.url, platform.url), (key, value) =>
              key === "node" ? undefined : value,
            );
          assert.equal(now.status, 200);
          assert.deepEqual(plain(now.body.data ?? now.body), before.body.data ?? before.body);
        }
        const found = await call(restored, "GET", "/drives?q=drive-2");
        assert.equal(found.body.data.length, 11);
        assert.equal(found.body.meta.total, 30);
        assert.equal(
          (await call(restored, "POST", "/drives", { body: { metadata: { name: "new" }, spec: {} } })).status,
          200,
        );
        assert.equal((await call(restored, "GET", "/drives?q=new")).body.data.length, 1);
        to.remove();
      });
    }

    test("needs the key of its secrets", async () => {
      const to = await source.fresh();
      const refused = await berth(to, "restore", file);
      assert.equal(refused.code, 5);
      assert.match(refused.stderr, /secret\.key/);
      writeFileSync(join(to.dataDir, "secret.key"), "ab".repeat(32));
      assert.equal((await berth(to, "restore", keyed)).code, 5);
      copyFileSync(join(place.dataDir, "secret.key"), join(to.dataDir, "secret.key"));
      assert.equal((await berth(to, "restore", file)).code, 0);
      to.remove();
    });

    test("replaces what is there only with --force", async () => {
      const to = await source.fresh();
      copyFileSync(join(place.dataDir, "secret.key"), join(to.dataDir, "secret.key"));
      const other = await startTestPlatform(to);
      await call(other, "POST", "/drives", { body: { metadata: { name: "kept" }, spec: {} } });
      const busy = await berth(to, "restore", file, "--force");
      assert.equal(busy.code, 5, busy.stderr);
      assert.match(busy.stderr, /in use by another Berth|Servers are using this database/);
      await other.stop();

      assert.match((await berth(to, "restore", file)).stderr, /not empty.*--force/);
      // One that turns out to be damaged at its end has changed nothing.
      const cut = join(folder, "cut.gz");
      const lines = gunzipSync(readFileSync(file)).toString().trimEnd().split("\n");
      writeFileSync(cut, gzipSync(`${lines.slice(0, -1).join("\n")}\n`));
      const damaged = await berth(to, "restore", cut, "--force");
      assert.equal(damaged.code, 1);
      assert.match(damaged.stderr, /damaged: its end is missing/);
      const still = await startTestPlatform(to);
      assert.equal((await call(still, "GET", "/drives/kept")).status, 200);
      await still.stop();

      assert.equal((await berth(to, "restore", file, "--force")).code, 0);
      const replaced = await startTestPlatform(to);
      assert.equal((await call(replaced, "GET", "/drives/kept")).status, 404);
      assert.equal((await call(replaced, "GET", "/drives/drive-7")).status, 200);
      await replaced.stop();
      assert.equal((await berth(to, "backup", join(folder, `${source.name}-stopped.gz`))).code, 0);
      to.remove();
    });

    const DAMAGES: [what: string, damage: () => string, says: RegExp][] = [
      [
        "cut off in the middle",
        () => {
          const cut = join(folder, "half.gz");
          writeFileSync(cut, readFileSync(keyed).subarray(0, 3000));
          return cut;
        },
        /damaged/,
      ],
      [
        "changed in one row",
        () => {
          const changed = join(folder, "changed.gz");
          writeFileSync(changed, gzipSync(gunzipSync(readFileSync(keyed)).toString().replace("drive-3", "drive-X")));
          return changed;
        },
        /checksum does not match/,
      ],
      [
        "without a row",
        () => forge(keyed, (lines) => lines.filter((line) => !line.includes('"drive-3"'))),
        /rows are missing/,
      ],
      [
        "of a newer version",
        () =>
          forge(keyed, ([head = "", ...rest]) => {
            const manifest = JSON.parse(head) as { migrations: object[] };
            manifest.migrations.push({ id: 999, name: "future", checksum: "x" });
            return [JSON.stringify(manifest), ...rest];
          }),
        /newer Berth/,
      ],
      [
        "of another format",
        () => forge(keyed, ([head = "", ...rest]) => [head.replace('"format":1', '"format":2'), ...rest]),
        /format 2/,
      ],
      [
        "with a table that is not ours",
        () =>
          forge(keyed, ([head = "", ...rest]) => [head.replace('{"name":"accounts"', '{"name":"pg_authid"'), ...rest]),
        /does not fit/,
      ],
      [
        "with SQL for a name",
        () =>
          forge(keyed, ([head = "", ...rest]) => [
            head.replace('"columns":["id"', '"columns":["id\\") SELECT 1; --"'),
            ...rest,
          ]),
        /does not fit/,
      ],
      [
        "not a backup at all",
        () => {
          const other = join(folder, "other.gz");
          writeFileSync(other, gzipSync('{"hello": 1}\n'));
          return other;
        },
        /not a backup of Berth/,
      ],
      [
        "not packed",
        () => {
          const other = join(folder, "plain.txt");
          writeFileSync(other, "hello");
          return other;
        },
        /cannot be unpacked/,
      ],
    ];
    // The file is read the same way whatever it came from or goes to.
    for (const [what, damage, says] of source.name === "sqlite" ? DAMAGES : []) {
      test(`is refused when it is ${what}, and nothing is left behind`, async () => {
        const to = await source.fresh();
        const ended = await berth(to, "restore", damage());
        assert.equal(ended.code, 1, ended.stderr);
        assert.match(ended.stderr, says);
        assert.ok(!existsSync(join(to.dataDir, "secret.key")));
        await using fresh = await startTestPlatform(to);
        assert.deepEqual((await call(fresh, "GET", "/drives")).body.data, []);
        to.remove();
      });
    }
  });
}
