/** The real command line in its own process, against the real platform. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify, stripVTControlCharacters } from "node:util";
import { parse, parseAllDocuments } from "yaml";
import { type Ended, type RunOptions, runBerth, spawnBerth } from "../berth-process.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";
import { draftOf } from "../store.ts";

let platform: TestPlatform;
let folder: string;
let env: Record<string, string>;

before(async () => {
  platform = await startTestPlatform();
  folder = mkdtempSync(join(tmpdir(), "berth-cli-"));
  env = { BERTH_URL: platform.url, BERTH_API_KEY: TEST_KEY, BERTH_DATA: join(folder, "data") };
});
after(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const berth = (args: string, options: RunOptions = {}): Promise<Ended> =>
  runBerth(args.split(" "), { ...options, env: { ...env, ...options.env } });

const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

describe("resources", () => {
  test("are created, shown in every form, changed and deleted", async () => {
    const created = await berth(
      "create drive one --set spec.size=7 --label team=red --label a.b/c=d --display-name First",
    );
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stderr, /drive 'one' created/);
    const { body } = await platform.call("GET", "/drives/one");
    assert.deepEqual(body.metadata.labels, { team: "red", "a.b/c": "d" });
    assert.equal(body.spec.size, 7);

    assert.deepEqual(JSON.parse((await berth("get drive one -o json")).stdout), body);
    assert.deepEqual(parse((await berth("drive get one -o yaml")).stdout), { ...body, kind: "Drive" });
    assert.deepEqual(parse((await berth("get drive one")).stdout), body);
    assert.match(
      (await berth("list drives")).stdout,
      /^NAME +REGION +SIZE +STATUS +AGE\none +local +7 +DEPLOYED +\d+s\n$/,
    );
    assert.equal((await berth("get drives -o name")).stdout, "one\n");

    const changed = await berth("drive update one --display-name Second --label team=blue");
    assert.equal(changed.code, 0, changed.stderr);
    const { body: after } = await platform.call("GET", "/drives/one");
    assert.equal(after.metadata.displayName, "Second");
    assert.equal(after.metadata.labels.team, "blue");
    assert.equal(after.spec.size, 7);

    assert.equal((await berth("delete drive one --dry-run")).stdout, "drive 'one' would be deleted\n");
    assert.equal((await berth("delete drive one")).stdout, "drive 'one' deleted\n");
    assert.equal((await platform.call("GET", "/drives/one")).status, 404);
  });

  test("are listed beyond one page, searched, sorted and limited", async () => {
    const names = Array.from({ length: 205 }, (_, index) => `many-${String(index).padStart(3, "0")}`);
    await Promise.all(
      names.map((name) => platform.call("POST", "/volumes", { body: { metadata: { name }, spec: {} } })),
    );
    const all = await berth("list volumes --sort name:asc -o name");
    assert.deepEqual(all.stdout.trim().split("\n"), names);
    const found = await berth("volume list -q y-01 --sort name:desc --limit 3 -o name");
    assert.deepEqual(found.stdout.trim().split("\n"), ["many-019", "many-018", "many-017"]);
    const filtered = await berth("volume list --status FAILED -o json");
    assert.deepEqual(JSON.parse(filtered.stdout), []);
  });

  test("of the platform itself are reached the same way", async () => {
    const made = await berth("create service-account robot -o json");
    assert.equal(made.code, 0, made.stderr);
    const { client_id: clientId } = JSON.parse(made.stdout) as { client_id: string };
    assert.equal((await berth("list service-accounts -o name")).stdout, `${clientId}\n`);
    const found = JSON.parse((await berth(`get service-account ${clientId} -o json`)).stdout) as { name: string };
    assert.equal(found.name, "robot");
    assert.equal((await berth(`list service-account-keys ${clientId} -o json`)).code, 0);
    assert.equal((await berth("get service-account nobody")).code, 3);
    const key = () => platform.call("POST", `/service_accounts/${clientId}/api_keys`, { body: { name: "uploads" } });
    const keys = [(await key()).body.id, (await key()).body.id] as [string, string];
    const unclear = await berth(`service-account-key delete ${clientId}/uploads`);
    assert.notEqual(unclear.code, 0);
    for (const id of keys) assert.ok(unclear.stderr.includes(id), unclear.stderr);
    assert.equal((await berth(`service-account-key delete ${clientId}/${keys[0]}`)).code, 0);
    assert.equal((await berth(`service-account-key delete ${clientId}/uploads`)).code, 0);
    assert.equal((await berth(`service-account-key delete ${clientId}/uploads`)).code, 3);
    assert.equal((await berth(`delete service-account ${clientId}`)).code, 0);
  });

  test("are watched until Ctrl-C", async () => {
    const watching = spawnBerth("list drives --watch --interval 3600".split(" "), { env });
    await watching.printed(/no drives/);
    await platform.call("POST", "/drives", { body: { metadata: { name: "watched" }, spec: {} } });
    await watching.printed(/watched/);
    watching.child.kill("SIGINT");
    assert.equal((await watching.ended).code, 0);
    await platform.call("DELETE", "/drives/watched");
  });

  test("a call whose members all have defaults needs no body", async () => {
    await platform.call("POST", "/customdomains", { body: { metadata: { name: "apps.example.com" } } });
    const { code, stderr } = await berth("customdomain certificates-revoke apps.example.com");
    assert.equal(code, 3, stderr);
    assert.match(stderr, /certificate/i);
  });

  test("a snapshot of a volume is restored by its name when no other has it", async () => {
    await platform.call("POST", "/volumes", { body: { metadata: { name: "disk" }, spec: {} } });
    const { resources } = platform.app.store;
    const { uid: parent } =
      (await resources.get({ workspace: "main", kind: "volume", parent: "" }, "disk")) ?? assert.fail();
    const add = (id: string, name: string) =>
      resources.create(draftOf("volumesnapshot", id, { parent, spec: { name, status: "failed" } }));
    await add("snap_one", "once");
    await add("snap_two", "twice");
    await add("snap_three", "twice");
    const restore = async (snapshot: string) => (await berth(`volume restore disk ${snapshot} copy`)).stderr;
    assert.match(await restore("once"), /snap_one/);
    assert.match(await restore("twice"), /2 snapshots have .*snap_(two|three), snap_(two|three)/);
    assert.match(await restore("never"), /no snapshot of 'disk' has the name or id 'never'/);
  });

  test("every operation can be called by its id", async () => {
    const made = await berth("call driveCreate -f - -o json", { input: "metadata: {name: called}\nspec: {}\n" });
    assert.equal(JSON.parse(made.stdout).metadata.name, "called");
    const got = await berth("call driveGet --param driveName=called -o json");
    assert.equal(JSON.parse(got.stdout).metadata.name, "called");
    const misspelt = await berth("call driveGet --param drivename=called");
    assert.equal(misspelt.code, 2);
    assert.match(misspelt.stderr, /no parameter 'drivename'\. Did you mean driveName\?/);
    assert.equal((await berth("call driveDelete --param driveName=called")).code, 0);
    assert.match((await berth("operations drive")).stdout, /^driveList +GET +\/v0\/drives /m);
  });
});

const PLATFORM = `
apiVersion: any/v1
kind: Drive
metadata: {name: "\${PREFIX:app}-data", labels: {by: $WHO}}
spec:
  size: \${SIZE}
---
kind: volumes
metadata: {name: "\${PREFIX:app}-disk"}
spec: {size: 5}
`;

describe("apply", () => {
  const variables = { env: { WHO: "me", SIZE: "12" } };

  test("creates, then replaces, then deletes what a file describes", async () => {
    const path = file("platform.yaml", PLATFORM);
    const trial = await berth(`apply -f ${path} --dry-run`, variables);
    assert.equal(trial.stdout, "drive 'app-data' would be created\nvolume 'app-disk' would be created\n");
    assert.equal((await platform.call("GET", "/drives/app-data")).status, 404);

    const first = await berth(`apply -f ${path}`, variables);
    assert.equal(first.stdout, "drive 'app-data' created\nvolume 'app-disk' created\n");
    const { body } = await platform.call("GET", "/drives/app-data");
    assert.deepEqual([body.spec.size, body.metadata.labels.by], [12, "me"]);

    const second = await berth(`apply -f - -s WHO=you`, { env: { SIZE: "12" }, input: readFileSync(path, "utf8") });
    assert.equal(second.stdout, "drive 'app-data' configured\nvolume 'app-disk' unchanged\n");
    assert.equal((await platform.call("GET", "/drives/app-data")).body.metadata.labels.by, "you");

    assert.equal((await berth(`create -f ${path}`, variables)).code, 5);
    const gone = await berth(`delete -f ${path}`, variables);
    assert.equal(gone.stdout, "volume 'app-disk' deleted\ndrive 'app-data' deleted\n");
    assert.match((await berth(`delete -f ${path}`, variables)).stdout, /not there/);
  });

  test("finds the containers of nested resources in their metadata", async () => {
    const path = file(
      "nested.yaml",
      `kind: Sandbox
metadata: {name: box}
spec: {}
---
kind: Preview
metadata: {name: web, resourceName: box}
spec: {port: 3000}
---
kind: PreviewToken
metadata: {name: key, resourceName: box, previewName: web}
---
kind: Schedule
metadata: {resourceName: box}
id: nightly
type: cron
value: 0 3 * * *
input: {command: "true"}
---
kind: VPC
metadata: {name: net}
spec: {}
---
kind: EgressGateway
metadata: {name: out, vpcName: net}
spec: {}
`,
    );
    const ended = await berth(`apply -f ${path}`);
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal((await berth("list previews box -o name")).stdout, "web\n");
    assert.equal(JSON.parse((await berth("get preview box/web -o json")).stdout).spec.port, 3000);
    assert.equal((await platform.call("GET", "/sandboxes/box/previews/web/tokens")).body.length, 1);
    assert.equal((await platform.call("GET", "/sandboxes/box/schedules/nightly")).status, 200);
    assert.equal((await berth("get egressgateway net/out")).code, 0);
    const orphan = await berth("apply -f -", { input: "kind: Preview\nmetadata: {name: lost}\nspec: {port: 1}\n" });
    assert.match(orphan.stderr, /does not say what it belongs to\.\n {2}next: add metadata\.sandboxName/);
    const again = await berth(`apply -f ${path}`);
    assert.match(again.stdout, /vpc 'net' unchanged\negressgateway 'out' unchanged\n$/);
    const gone = await berth("delete preview box/web");
    assert.equal(gone.stdout, "preview 'box/web' deleted\n");
  });

  test("takes back what get -o yaml gives", async () => {
    await platform.call("POST", "/drives", {
      body: { metadata: { name: "trip", displayName: "x" }, spec: { size: 3 } },
    });
    const { stdout } = await berth("list drives -o yaml");
    const path = file("export.yaml", stdout.replace("displayName: x", "displayName: y"));
    assert.equal(parseAllDocuments(stdout).length, 1);
    assert.equal((await berth(`apply -f ${path}`)).stdout, "drive 'trip' configured\n");
    assert.equal((await platform.call("GET", "/drives/trip")).body.metadata.displayName, "y");
    await platform.call("DELETE", "/drives/trip");
  });

  test("tells what failed and goes on with the rest", async () => {
    const path = file(
      "half.yaml",
      "kind: Drive\nmetadata: {name: Not-A-Name}\nspec: {}\n---\nkind: Drive\nmetadata: {name: good}\nspec: {}\n",
    );
    const ended = await berth(`apply -f ${path}`);
    assert.equal(ended.code, 1, "2 would say that nothing was done");
    assert.equal(ended.stdout, "drive 'good' created\n");
    assert.match(ended.stderr, /drive 'Not-A-Name' failed\nberth: .*metadata\.name: must be lower-case/);
    const again = await berth(`apply -f ${path} -o json`);
    assert.deepEqual(
      (JSON.parse(again.stdout) as { name: string; outcome: string }[]).map(({ name, outcome }) => [name, outcome]),
      [
        ["Not-A-Name", "failed"],
        ["good", "unchanged"],
      ],
    );
    await platform.call("DELETE", "/drives/good");
  });

  const REFUSED: [what: string, text: string, says: RegExp][] = [
    [
      "an unknown kind, before anything is done",
      "kind: Drive\nmetadata: {name: early}\nspec: {}\n---\nkind: Drvie\n",
      /no kind 'Drvie'. Did you mean drive/,
    ],
    ["a variable that is not set", "kind: Drive\nmetadata: {name: $NOT_SET}\n", /NOT_SET is not set/],
    ["an empty file", "", /there is nothing in it/],
  ];
  for (const [what, text, says] of REFUSED) {
    test(`refuses ${what}`, async () => {
      const ended = await berth("apply -f -", { input: text });
      assert.equal(ended.code, 2);
      assert.match(ended.stderr, says);
      assert.equal((await platform.call("GET", "/drives/early")).status, 404);
    });
  }
});

describe("exit codes and what to do next", () => {
  const CASES: [args: string, env: Record<string, string>, code: number, says: RegExp][] = [
    ["get drive nope", {}, 3, /does not exist/],
    ["list drives", { BERTH_API_KEY: "wrong" }, 4, /next: log in/],
    ["list drives -w elsewhere", {}, 4, /next: `berth workspaces`/],
    ["list drives --url http://127.0.0.1:9", {}, 6, /does not answer[^\n]*\n {2}next: start the server/],
    ["list drivs", {}, 2, /Did you mean drive\?/],
    ["lst", {}, 2, /Did you mean list\?/],
    ["list drives --bogus", {}, 2, /unknown option '--bogus'\n {2}next: see `berth list --help`/],
    ["audit verify --bogus", {}, 2, /unknown option '--bogus'\n {2}next: see `berth audit verify --help`/],
    ["list drives -o xml", {}, 2, /Allowed choices are table/],
    ["list", {}, 2, /missing required argument 'kind'/],
    ["create drive bad --set spec.size=-1", {}, 2, /spec\.size/],
    ["create drive Bad_Name", {}, 2, /metadata\.name: must be lower-case/],
    ["list drives", { BERTH_URL: "", BERTH_API_KEY: "" }, 2, /next: start one with `berth up`/],
    ["list drives", { BERTH_API_KEY: "" }, 2, /no credentials for/],
    ["apply", {}, 2, /no file is given/],
    ["apply -f nowhere.yaml", {}, 2, /nowhere\.yaml does not exist/],
  ];
  for (const [args, extra, code, says] of CASES) {
    test(`berth ${args} ${JSON.stringify(extra)} ends with ${code}`, async () => {
      const ended = await berth(args, { env: extra });
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stderr, says);
      assert.equal(ended.stdout, "");
      assert.doesNotMatch(ended.stderr, /\n\s+at /);
    });
  }

  test("help is no failure and is there for every command", async () => {
    for (const args of ["", "--help", "list --help", "drive --help", "drive list --help"]) {
      const ended = await runBerth(args.split(" ").filter(Boolean), { env });
      assert.equal(ended.code, 0, args);
      assert.match(ended.stdout, /Usage: berth/);
    }
  });
});

const noScript =
  spawnSync("script", ["--version"]).status !== 0 && "no `script` here to make a terminal; install util-linux";

test("colours are for terminals, and NO_COLOR is honoured", { skip: noScript }, async () => {
  await platform.call("POST", "/drives", { body: { metadata: { name: "painted" }, spec: {} } });
  const command = `${process.execPath} bin/berth.js list drives`;
  const onTerminal = async (extra: Record<string, string>): Promise<string> => {
    const all = { PATH: process.env.PATH, TERM: "xterm", ...env, ...extra };
    return (await promisify(execFile)("script", ["-qec", command, "/dev/null"], { env: all })).stdout;
  };
  const isPainted = (text: string): boolean => text !== stripVTControlCharacters(text);
  const painted = await onTerminal({});
  const plain = [await onTerminal({ NO_COLOR: "1" }), (await berth("list drives")).stdout];
  for (const text of [painted, ...plain]) assert.match(stripVTControlCharacters(text), /painted +local +DEPLOYED/);
  assert.deepEqual([painted, ...plain].map(isPainted), [true, false, false]);
  await platform.call("DELETE", "/drives/painted");
});

describe("servers and credentials", () => {
  const bare = (): Record<string, string> => ({ BERTH_DATA: mkdtempSync(join(folder, "data-")) });

  test("login checks and keeps the key, logout forgets it", async () => {
    const own = bare();
    const refused = await runBerth(["login", platform.url], { env: own, input: "wrong-key\n" });
    assert.equal(refused.code, 4);
    const ended = await runBerth(["login", `${platform.url}/v0`, "--profile", "lab"], {
      env: own,
      input: `${TEST_KEY}\n`,
    });
    assert.equal(ended.code, 0, ended.stderr);
    assert.ok(!(ended.stdout + ended.stderr).includes(TEST_KEY));
    assert.equal(statSync(join(own.BERTH_DATA ?? "", "profiles.json")).mode & 0o777, 0o600);
    assert.equal((await runBerth(["list", "drives"], { env: own })).code, 0);
    assert.equal((await runBerth(["token"], { env: own })).stdout, `${TEST_KEY}\n`);
    assert.equal((await runBerth(["logout"], { env: own })).code, 0);
    assert.equal((await runBerth(["list", "drives"], { env: own })).code, 2);
  });

  test("a kept key is not sent to another address", async () => {
    const own = bare();
    await runBerth(["login", platform.url], { env: own, input: TEST_KEY });
    const ended = await runBerth(["list", "drives", "--url", "http://127.0.0.1:9"], { env: own });
    assert.equal(ended.code, 2);
    assert.match(ended.stderr, /no credentials for http:\/\/127\.0\.0\.1:9/);
  });

  test("the server on this machine needs no login; a workspace is chosen and kept", async () => {
    const own = { BERTH_DATA: platform.dataDir };
    writeFileSync(
      join(platform.dataDir, "credentials.json"),
      JSON.stringify({ url: platform.url, workspace: "main", apiKey: TEST_KEY }),
    );
    await platform.call("POST", "/workspaces", { body: { name: "second" } });
    assert.match((await runBerth(["workspaces"], { env: own })).stdout, /^main +\* /m);
    assert.equal((await runBerth(["workspaces", "nope"], { env: own })).code, 3);
    assert.equal((await runBerth(["workspaces", "second"], { env: own })).code, 0);
    assert.match((await runBerth(["workspaces"], { env: own })).stdout, /^second +\* /m);
    await runBerth(["create", "drive", "there"], { env: own });
    assert.equal((await platform.call("GET", "/drives/there", { workspace: "second" })).status, 200);
    assert.equal((await platform.call("GET", "/drives/there", { workspace: "main" })).status, 404);
  });

  test("a key that is brought is used for the server on this machine too", async () => {
    const own = bare();
    writeFileSync(
      join(own.BERTH_DATA ?? "", "credentials.json"),
      JSON.stringify({ url: platform.url, workspace: "main", apiKey: "not-the-key-that-is-brought" }),
    );
    assert.equal((await runBerth(["login"], { env: own, input: "wrong-key\n" })).code, 4);
    assert.equal((await runBerth(["login"], { env: own, input: `${TEST_KEY}\n` })).code, 0);
    assert.equal((await runBerth(["token"], { env: own })).stdout, `${TEST_KEY}\n`);
    assert.equal((await runBerth(["login", platform.url], { env: own })).code, 0);
    assert.equal((await runBerth(["token"], { env: own })).stdout, "not-the-key-that-is-brought\n");
  });

  test("variables of other tools for such platforms are understood", async () => {
    const ended = await runBerth(["list", "drives"], {
      env: { ...bare(), BL_API_URL: `${platform.url}/v0`, BL_API_KEY: TEST_KEY, BL_WORKSPACE: "main" },
    });
    assert.equal(ended.code, 0, ended.stderr);
  });
});
