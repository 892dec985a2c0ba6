/** Deploying code, and sending a request to it. */
import { CONNECTION_OPTIONS, type CommandSpec, GROUPS, type OptionSpec, text } from "../command.ts";
import { findNoun, type Noun } from "../nouns.ts";
import { REMOTE } from "./options.ts";

const DETAILS = `Reads berth.toml or service.toml (see docs/deploy.md), sends the folder without what .berthignore
names, shows the build and waits until it answers or has failed. A folder may hold several: [agent.NAME],
[function.NAME] and [job.NAME] with a path each. Files in .berth/ are applied first.`;

const DEV_DETAILS = `The code gets the variables that it has on the platform, with your own credentials: models, sandboxes,
functions and threads are those of the workspace. It is installed first when it was not, and started again when a file
of the folder changes. The start command is that of a deployment, or dev below [entrypoint] in the deploy file.`;

export const deployCommands = (nouns: readonly Noun[]): CommandSpec[] => [
  {
    name: "new",
    group: GROUPS.resources,
    summary: "start a folder from a template, or list the templates",
    args: [
      { name: "template", about: "its name; the list when left out", optional: true },
      { name: "folder", about: "where to; a folder called like the template when left out", optional: true },
    ],
    options: REMOTE,
    examples: ["berth new", "berth new agent-echo my-agent && berth deploy my-agent"],
    run: async (call) => (await import("../actions/new.ts")).createFolder(nouns, call),
  },
  {
    name: "init",
    group: GROUPS.resources,
    summary: "ask three questions and start a folder",
    details:
      "Asks what you make, which template it begins with and what its name is. Without a terminal, give all three.",
    options: [
      { flags: "-t, --type <type>", about: "agent, function, application, job or sandbox" },
      { flags: "--template <name>", about: "a template of `berth new`; says the type, too" },
      { flags: "-n, --name <name>", about: "of the resource, and of the folder" },
      { flags: "--folder <folder>", about: "where to; a folder called like the resource when left out" },
      ...REMOTE,
    ],
    examples: ["berth init", "berth init --template agent-echo --name my-agent"],
    run: async (call) => (await import("../actions/init.ts")).init(nouns, call),
  },
  {
    name: "dev",
    group: GROUPS.resources,
    summary: "run the code in a folder on this machine, and again whenever it changes",
    details: DEV_DETAILS,
    args: [{ name: "folder", about: "where the code is; this folder when left out", optional: true, offers: [] }],
    options: [
      { flags: "--port <port>", about: "default 8000, or a free one when it is taken; 0 is any free one" },
      { flags: "-n, --name <name>", about: "which resource of the folder, or another name for the only one" },
      { flags: "-e, --env-file <file>", about: "variables for the code and for [env], KEY=VALUE per line", many: true },
      { flags: "-s, --secret <key=value>", about: "a variable for the code and for [env]", many: true },
      ...CONNECTION_OPTIONS,
    ],
    examples: ["berth dev", "berth dev my-agent --port 9000"],
    run: async (call) => (await import("../actions/dev.ts")).dev(nouns, call),
  },
  {
    name: "deploy",
    group: GROUPS.resources,
    summary: "build and run the code in a folder",
    details: DETAILS,
    args: [{ name: "folder", about: "where the code is; this folder when left out", optional: true, offers: [] }],
    options: [
      { flags: "-n, --name <name>", about: "instead of the name in the file or of the folder" },
      {
        flags: "--traffic <percent>",
        about: "share of this and later new revisions; below 100 each is a canary (default: as the record has it)",
      },
      { flags: "--skip-build", about: "keep the code or image that runs, change only the settings" },
      {
        flags: "-e, --env-file <file>",
        about: "secret variables of the workload and for [env], KEY=VALUE per line",
        many: true,
      },
      { flags: "-s, --secret <key=value>", about: "a secret variable of the workload and for [env]", many: true },
      ...REMOTE,
    ],
    examples: [
      "berth deploy",
      "berth deploy examples/agent-echo",
      "berth deploy . --name staging -s TOKEN=abc",
      "berth deploy --traffic 10",
    ],
    run: async (call) => (await import("../actions/deploy.ts")).deploy(nouns, call),
  },
  {
    name: "run",
    group: GROUPS.resources,
    summary: "send a request to something that runs",
    commands: ["agent", "application", "function", "model", "sandbox"]
      .map((kind) => runCommand(findNoun(nouns, kind)))
      .concat({
        name: "job",
        group: GROUPS.verbs,
        summary: "start the tasks of a job, and print the id of the execution",
        args: [{ name: "name", about: "the job", offers: "name" }],
        options: [
          ...BODY,
          { flags: "--wait", about: "show how far it is until it ends; exit code 1 unless all succeeded" },
          ...CONNECTION_OPTIONS,
        ],
        examples: [
          `berth run job batch --data '{"tasks":[{"text":"a"},{"text":"b"}]}'`,
          "berth run job batch --file tasks.json --wait",
        ],
        run: async (call) => (await import("../actions/run.ts")).runJob(nouns, text(call.args[0]) ?? "", call),
      }),
  },
];

const BODY: readonly OptionSpec[] = [
  { flags: "-d, --data <text>", about: "the body" },
  { flags: "-f, --file <file>", about: "a file with the body, or - for standard input" },
];

const EXAMPLES: Record<string, string> = {
  agent: `berth run agent echo --data '{"inputs":"hello"}'`,
  application: "berth run application site --path /health",
  function: `berth run function tools --data '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'`,
  model: `berth run model gpt --path /v1/chat/completions --file request.json`,
  sandbox: "berth run sandbox box --path /process",
};

const runCommand = (noun: Noun): CommandSpec => ({
  name: noun.name,
  group: GROUPS.verbs,
  summary: `send a request to ${/^[aeiou]/.test(noun.name) ? "an" : "a"} ${noun.name} and show the answer as it comes`,
  args: [{ name: "name", about: "its name", offers: "name" }],
  options: [
    ...BODY,
    {
      flags: "-p, --path <path>",
      about: `below its address, with the query${noun.name === "function" ? " (default /mcp)" : ""}`,
    },
    { flags: "-X, --method <method>", about: "default POST with a body, GET without" },
    { flags: "-H, --header <line>", about: "another header, as NAME: VALUE", many: true },
    { flags: "-i, --include", about: "also show the status and the headers" },
    ...CONNECTION_OPTIONS,
  ],
  examples: [EXAMPLES[noun.name] ?? ""],
  run: async (call) => (await import("../actions/run.ts")).runWorkload(noun, text(call.args[0]) ?? "", call),
});
