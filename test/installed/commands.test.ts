/** Every command of the command line, run by an installation against its own server. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import type { CommandSpec } from "../../src/cli/command.ts";
import { allCommands } from "../../src/cli/program.ts";
import { operatorCommands } from "../../src/operator/commands.ts";
import { commandOf } from "./command.ts";
import { installation } from "./installation.ts";
import { workloadsSkip } from "./isolation.ts";
import { apiOf } from "./suite.ts";

const WORKSPACE = "commands";
const LIST = readFileSync(join(import.meta.dirname, "commands.txt"), "utf8");

/** Where the commands are run that need a terminal, an archive, another server, or the end of this one. */
const ELSEWHERE: Record<string, string> = {
  up: "every installation is started with it",
  down: "and stopped with it",
  upgrade: "test/installed/upgrade.test.ts",
  backup: "docs/tour.md",
  "backup verify": "test/backup/drills.test.ts",
  "backup list": "test/backup/drills.test.ts",
  restore: "test/e2e/backup.test.ts",
  "restart-edges": "test/edge/processes-restart.test.ts",
  "rotate-key": "test/rotation/cli.test.ts; a backup that another file makes meanwhile would be refused",
  "reset-password": "test/identity/cli-sign-in.test.ts",
  passwd: "test/identity/cli-suite.ts",
  "password set": "test/identity/people-suite.ts, by its operation",
  login: "test/identity/cli-suite.ts",
  logout: "test/identity/cli-suite.ts",
  trust: "test/edge/https.test.ts, with a server that signs its own certificates",
  apply: "docs/tour.md",
  "sandbox connect": "test/e2e/sandboxes/cli.test.ts",
  "customdomain verify": "test/e2e/custom-domains.test.ts, with a name server of its own",
  "image create": "test/e2e/images.test.ts",
  "workspace leave": "test/e2e/workspaces.test.ts, by its operation",
  "image load": "test/e2e/image-load.test.ts",
  "image build": "test/e2e/image-build.test.ts",
  "image pull": "test/e2e/image-pull.test.ts",
  "billing rebuild": "test/e2e/billing-cli.test.ts",
  "account reprice": "test/e2e/billing-metrics.test.ts",
  "account metrics-rebuild": "test/e2e/billing-metrics.test.ts",
};

interface Step {
  code: number;
  /** What to keep of its answer, and under which name. */
  keep: { name: string; path: string } | null;
  words: string[];
  onMachine: boolean;
}

const installed = await installation();
const { call } = apiOf(installed);
const folder = mkdtempSync(join(installed.home, "commands-"));
const kept = new Map<string, string>();
const run = commandOf(installed);
const options = { cwd: join(folder, "work"), workspace: WORKSPACE };

before(async () => {
  const made = await call("POST", "/workspaces", { body: { name: WORKSPACE } });
  assert.ok([200, 409].includes(made.status), JSON.stringify(made.body));
  mkdirSync(join(folder, "work"));
  writeFileSync(join(folder, "file"), "copied\n");
});

for (const { code, keep, words, onMachine } of stepsOf(LIST))
  test(`berth ${words.join(" ")}`, { skip: onMachine && workloadsSkip }, async () => {
    const filled = words.map((word) =>
      word.replace(/^~/, folder).replace(/\$(\w+)/g, (_, name: string) => kept.get(name) ?? assert.fail(`no $${name}`)),
    );
    const done = await run(filled, options);
    assert.equal(done.code, code, done.stdout + done.stderr);
    assert.doesNotMatch(done.stderr, /\n {4}at /, "no stack is shown to people");
    if (keep) kept.set(keep.name, memberOf(JSON.parse(done.stdout), keep.path));
  });

test("no command is left out", () => {
  const run = stepsOf(LIST).map(({ words }) => words.join(" "));
  const missing = allCommands(operatorCommands)
    .flatMap((command) => pathsOf(command))
    .filter((path) => !(path in ELSEWHERE) && !run.some((line) => line === path || line.startsWith(`${path} `)));
  assert.deepEqual(missing, []);
});

function pathsOf(command: CommandSpec, under = ""): string[] {
  const path = `${under}${command.name}`;
  return command.commands ? command.commands.flatMap((each) => pathsOf(each, `${path} `)) : [path];
}

function stepsOf(text: string): Step[] {
  let onMachine = false;
  return text.split("\n").flatMap((line) => {
    if (line.startsWith("@")) onMachine = line === "@machine";
    if (line === "" || /^[#@]/.test(line)) return [];
    const [, name, path = "", code, command = ""] = /^(?:(\w+)=(\S+) )?(?:(\d) )?(.*)$/.exec(line) ?? [];
    const words = [...command.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
    return [{ code: Number(code ?? 0), keep: name ? { name, path } : null, words, onMachine }];
  });
}

/** `.id`, `[0].id` */
const memberOf = (value: unknown, path: string): string =>
  String(
    [...path.matchAll(/\w+/g)].reduce<unknown>((inner, [name]) => (inner as Record<string, unknown>)[name], value),
  );
