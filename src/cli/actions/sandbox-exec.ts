/** Runs a command inside a sandbox as if it ran here: output, exit code, piped input and Ctrl-C. */
import { Readable } from "node:stream";
import { randomWord } from "../../lib/ids.ts";
import { type Invocation, text, texts } from "../command.ts";
import { EXIT } from "../failure.ts";
import { linesOf, openSandbox, type SandboxDoor } from "../sandbox-door.ts";

/** Exit code of shells for an interrupted command. */
const INTERRUPTED = 130;
/** `timeout` and terminals signal a whole process group, and the parent may pass the same signal on once more. */
const SAME_PRESS_MS = 500;

export async function exec(call: Invocation): Promise<number | undefined> {
  const words = texts(call.args[1]);
  const box = text(call.args[0]) ?? "";
  const sandbox = await openSandbox(box, call);
  const name = `cli-${randomWord(8)}`;
  const command = {
    box,
    // One word is a line for the sandbox's shell; several are a program and its arguments.
    line: words.length === 1 ? (words[0] ?? "") : words.map(quoted).join(" "),
    workingDir: text(call.options.workdir),
    name,
  };
  return run(sandbox, command, call);
}

/** Streams standard input to the command until either side ends. */
function feed(sandbox: SandboxDoor, name: string, signal: AbortSignal): void {
  void sandbox
    .fetch(`/process/${name}/stdin?end=true`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body: Readable.toWeb(process.stdin) as ReadableStream,
      duplex: "half",
      signal,
    })
    // A command need not read all of its input; its own stream reports how it ended.
    .catch(() => {});
}

interface Command {
  /** The name of the sandbox. */
  box: string;
  line: string;
  workingDir: string | undefined;
  name: string;
}

async function run(sandbox: SandboxDoor, command: Command, call: Invocation): Promise<number> {
  const { line, workingDir, name } = command;
  const { note, now } = call.context;
  let interruptedMs: number | null = null;
  const interrupt = (): void => {
    if (interruptedMs === null) {
      interruptedMs = now();
      void sandbox.fetch(`/process/${name}`, { method: "DELETE" }).catch(() => note(goesOn(command)));
    } else if (now() > interruptedMs + SAME_PRESS_MS) {
      // Only the first Ctrl-C is passed on; the second ends this program.
      note(goesOn(command));
      process.exit(INTERRUPTED);
    }
  };
  const hasStdin = call.options.stdin === true;
  const fed = new AbortController();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, interrupt);
  try {
    const response = await sandbox.fetch("/process", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({
        command: line,
        name,
        waitForCompletion: true,
        ...(hasStdin ? { stdin: true } : {}),
        ...(workingDir === undefined ? {} : { workingDir }),
      }),
    });
    if (hasStdin) feed(sandbox, name, fed.signal);
    for await (const each of linesOf(response)) {
      const { type, data = "" } = JSON.parse(each) as { type: string; data?: string };
      if (type === "stdout") process.stdout.write(data);
      else if (type === "stderr") process.stderr.write(data);
      else if (type === "error") throw new Error(data);
      else if (type === "result") return interruptedMs === null ? exitCodeIn(data) : INTERRUPTED;
    }
  } finally {
    for (const signal of signals) process.off(signal, interrupt);
    // An input that has not ended would keep this program running.
    fed.abort();
    if (hasStdin) process.stdin.destroy();
  }
  call.context.note("the sandbox ended the stream before the command had ended");
  return EXIT.failure;
}

/** A command may take its time to stop, or refuse. */
const goesOn = ({ box, name }: Command): string =>
  `The command goes on as ${name}; stop it with \`berth run sandbox ${box} -X DELETE --path /process/${name}/kill\`.`;

function exitCodeIn(result: string): number {
  const { exitCode } = JSON.parse(result) as { exitCode?: number };
  return typeof exitCode === "number" && exitCode >= 0 ? exitCode : EXIT.failure;
}

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
