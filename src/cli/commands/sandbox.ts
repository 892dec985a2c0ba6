/** Commands for sandboxes beside the five common verbs: `berth sandbox exec box -- npm test`. */
import { type ArgumentSpec, CONNECTION_OPTIONS, type CommandSpec, GROUPS } from "../command.ts";
import { REMOTE } from "./options.ts";

const NAME: ArgumentSpec = { name: "name", about: "the sandbox", offers: "name" };
const group = GROUPS.verbs;

export const sandboxVerbs: readonly CommandSpec[] = [
  {
    name: "exec",
    group,
    summary: "run a command and show its output as it comes",
    details:
      "Ends with the command's own exit code; Ctrl-C ends the command. One argument is a line for the shell inside.",
    args: [NAME, { name: "command", about: "behind --", many: true }],
    options: [
      { flags: "--workdir <folder>", about: "where to run it" },
      { flags: "-i, --stdin", about: "give it what is piped in here, as it comes" },
      ...CONNECTION_OPTIONS,
    ],
    examples: [
      "berth sandbox exec box -- ls -la /",
      "berth sandbox exec box 'cd /app && npm test'",
      "berth sandbox exec -i box -- python3 - < script.py",
    ],
    run: async (call) => (await import("../actions/sandbox-exec.ts")).exec(call),
  },
  {
    name: "connect",
    group,
    summary: "open a terminal",
    args: [NAME],
    options: [{ flags: "--session <id>", about: "share a session, or come back to it" }, ...CONNECTION_OPTIONS],
    examples: ["berth sandbox connect box"],
    run: async (call) => (await import("../actions/sandbox-terminal.ts")).terminal(call),
  },
  {
    name: "logs",
    group,
    summary: "list the processes, or show what one has written",
    args: [NAME, { name: "process", about: "its name or pid", optional: true }],
    options: [{ flags: "-f, --follow", about: "go on until it ends" }, ...REMOTE],
    examples: ["berth sandbox logs box", "berth sandbox logs box web --follow"],
    run: async (call) => (await import("../actions/sandbox.ts")).logs(call),
  },
  {
    name: "cp",
    group,
    summary: "copy a file or a folder into a sandbox or out of it",
    details:
      "A file goes into a folder that is there under its own name, a folder where the path inside ends with a slash.",
    args: [
      { name: "from", about: "a file or folder, or SANDBOX:PATH" },
      { name: "to", about: "a file or folder, or SANDBOX:PATH" },
    ],
    options: CONNECTION_OPTIONS,
    examples: [
      "berth sandbox cp data.csv box:/tmp/data.csv",
      "berth sandbox cp box:/tmp/result.json .",
      "berth sandbox cp ./src box:/app/",
    ],
    run: async (call) => (await import("../actions/sandbox-copy.ts")).copy(call),
  },
  {
    name: "preview",
    group,
    summary: "give a port an address",
    details: "A private preview is printed with a token that opens it.",
    args: [NAME, { name: "port", about: "the port inside" }],
    options: [
      { flags: "--public", about: "anybody may open it" },
      { flags: "--name <name>", about: "its name (default port-PORT)" },
      ...CONNECTION_OPTIONS,
    ],
    examples: ["berth sandbox preview box 3000 --public"],
    run: async (call) => (await import("../actions/sandbox.ts")).preview(call),
  },
  {
    name: "snapshot",
    group,
    summary: "keep the files as they are now",
    args: [NAME],
    options: [
      { flags: "--name <text>", about: "what to call it" },
      { flags: "--memory", about: "keep processes and memory, too (isolation vm-like)" },
      ...REMOTE,
    ],
    examples: ["berth sandbox snapshot box --name before-upgrade", "berth sandbox snapshot box --memory"],
    run: async (call) => (await import("../actions/sandbox.ts")).snapshot(call),
  },
  {
    name: "fork",
    group,
    summary: "make a new sandbox, or an application, with the files of this one",
    details: "An application runs the program that listens on the port; one of this name gets a new revision.",
    args: [NAME, { name: "target", about: "name of what is made" }],
    options: [
      { flags: "--snapshot <id>", about: "the files of this snapshot (default: as they are now)" },
      { flags: "--memory", about: "go on with the same processes and memory (isolation vm-like)" },
      { flags: "--copies <count>", about: "make so many, named TARGET-1, TARGET-2 …" },
      { flags: "--application", about: "make an application" },
      { flags: "--port <port>", about: "where it listens (default: the sandbox's first port, or 8080)" },
      { flags: "--traffic <percent>", about: "share of the requests for a new revision (default: all)" },
      ...REMOTE,
    ],
    examples: [
      "berth sandbox fork box copy",
      "berth sandbox fork box try --copies 10 --memory",
      "berth sandbox fork box site --application --port 3000",
    ],
    run: async (call) => (await import("../actions/sandbox.ts")).fork(call),
  },
];
