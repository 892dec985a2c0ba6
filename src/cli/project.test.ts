import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { type Project, type ProjectOptions, readProjects } from "./project.ts";

const root = mkdtempSync(join(tmpdir(), "berth-project-"));
after(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
function read(files: Record<string, string>, options: Partial<ProjectOptions> = {}): Project[] {
  const dir = join(root, `p${count++}`);
  for (const [path, content] of Object.entries({ "README.md": "", ...files })) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), content);
  }
  return readProjects(dir, { variables: { env: {}, secrets: {} }, envs: [], brand: undefined, ...options });
}

test("a folder without a file is an agent of its own name", () => {
  const [project] = read({});
  assert.deepEqual([project?.kind, project?.name, project?.spec], ["agent", `p${count - 1}`, { runtime: {} }]);
});

test("every key of the file has its place", () => {
  const [project] = read({
    "berth.toml": `
      name = "mine"
      type = "job"
      workspace = "dev"
      protocol = "any"
      functions = ["all"]
      policies = ["p"]
      region = "here"
      public = true
      revision = { traffic = 50 }
      memory = 1024
      [entrypoint]
      prod = "node index.js"
      [env]
      A = "1"
      [runtime]
      timeout = "15m"
      maxRetries = 2
      [[triggers]]
      type = "cron"
      [triggers.configuration]
      schedule = "0 * * * *"
      [[volumes]]
      name = "v"
      mountPath = "/v"
      [build]
      slim = true
      [build.args]
      X = "y"
      [githubRunner]
      repositories = "a/b"`,
  });
  assert.deepEqual(JSON.parse(JSON.stringify(project)), {
    ...project,
    name: "mine",
    kind: "job",
    workspace: "dev",
    image: null,
    spec: {
      triggers: [{ type: "cron", configuration: { schedule: "0 * * * *" } }],
      volumes: [{ name: "v", mountPath: "/v" }],
      policies: ["p"],
      region: "here",
      public: true,
      revision: { traffic: 50 },
      githubRunner: { repositories: "a/b" },
      functions: ["all"],
      runtime: { memory: 1024, maxRetries: 2, timeout: 900, envs: [{ name: "A", value: "1" }] },
    },
  });
});

test("an application is flat, and an image takes the place of code", () => {
  const [project] = read({ "service.toml": 'type = "application"\nport = 3000\nmemory = 512\nimage = "a/b:1"' });
  assert.deepEqual(project?.spec, { image: "a/b:1", memory: 512, port: 3000 });
  assert.equal(project?.image, "a/b:1");
});

test("variables come from .env, from what is given, then from [env]; credentials do not", () => {
  const [project] = read(
    { ".env": "A=file\nB=file\nD=file\nBL_API_KEY=mine", "berth.toml": '[env]\nB = "toml $NAME"\nC = "$secrets.S"' },
    {
      variables: { env: { NAME: "Ada" }, secrets: { S: "s" } },
      envs: [
        { name: "A", value: "given" },
        { name: "T", value: "token", secret: true },
      ],
    },
  );
  assert.deepEqual((project?.spec.runtime as { envs: unknown } | undefined)?.envs, [
    { name: "A", value: "given" },
    { name: "B", value: "toml Ada" },
    { name: "D", value: "file", secret: true },
    { name: "T", value: "token", secret: true },
    { name: "C", value: "s" },
  ]);
});

test("one folder may hold several, and need not be one itself", () => {
  const files = {
    "acme.toml": 'name = "root"\n[function.tools]\npath = "tools"\nport = 9\n[agent.inner]\npath = "inner"',
    "tools/berth.toml": '[env]\nT = "1"',
    "inner/index.js": "",
  };
  const names = (projects: Project[]): string[] => projects.map(({ kind, name }) => `${kind}/${name}`);
  const projects = read(files, { brand: "acme" });
  assert.deepEqual(names(projects), ["agent/inner", "function/tools", "agent/root"]);
  assert.deepEqual(projects[1]?.spec.runtime, { port: 9, envs: [{ name: "T", value: "1" }] });
  const alone = { ...files, "acme.toml": `skipRoot = true\n${files["acme.toml"]}` };
  assert.deepEqual(names(read(alone, { brand: "acme" })), ["agent/inner", "function/tools"]);
});

test("what is wrong is told with its place", () => {
  const cases: [string, RegExp][] = [
    ["nme = 'x'", /no key 'nme'/],
    ["name = ", /berth\.toml: /],
    ["[runtime]\ntimeout = 'soon'", /runtime\.timeout is not a duration/],
    ["[agent.x]\nport = 1", /\[agent\.x\] has no path/],
    ["[agent.x]\npath = 'nowhere'", /not a folder/],
    ["[env]\nA = '$NOBODY'", /NOBODY is not set/],
  ];
  for (const [toml, message] of cases) assert.throws(() => read({ "berth.toml": toml }), { message });
});
