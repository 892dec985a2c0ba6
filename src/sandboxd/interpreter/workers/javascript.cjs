/**
 * Runs the JavaScript code of one context of the code interpreter, in Node.js. The server has already turned the code
 * into a script whose value is undefined, `{ value }` or a promise of either. For descriptor 3 and the marks see
 * python.py.
 */
const { writeSync } = require("node:fs");
const { createRequire } = require("node:module");
const { inspect } = require("node:util");
const vm = require("node:vm");

const CHANNEL = 3;
const DISPLAY = Symbol.for("Jupyter.display");
const TEXT_CHARS_MAX = 1_000_000;
const TRACEBACK_CHARS_MAX = 64_000;
const EXIT_WITHOUT_SERVER = 70;
const WAIT_MS = 2;
const FENCE = "\x01";
const END = "\0";

/** Set while code runs: ends the execution with an error. */
let interrupt = null;
/** Whether the text of a string has its quotes; the execution says so. */
let quotes = false;
/** Written to both outputs before each result and after the execution; empty between executions. */
let mark = "";

function write(fd, text) {
  let rest = Buffer.from(text);
  while (rest.byteLength > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS);
    }
  }
}

function send(message) {
  try {
    write(CHANNEL, `${JSON.stringify(message)}\n`);
  } catch {
    process.exit(EXIT_WITHOUT_SERVER);
  }
}

/** Writes the mark to both outputs; the descriptors that code has closed are left out of the answer. */
const marked = (kind) =>
  [1, 2].filter((fd) => {
    try {
      write(fd, mark + kind);
      return true;
    } catch {
      return false;
    }
  });

/** Sends a result or an error, which comes after the output before it. Between executions it is for nobody. */
function sendAfterOutput(message) {
  if (mark === "") return;
  const fenced = marked(FENCE);
  send({ ...message, unfenced: [1, 2].filter((fd) => !fenced.includes(fd)) });
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most)}… (${text.length} characters)` : text);

const contentOf = (content) =>
  ArrayBuffer.isView(content)
    ? Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString("base64")
    : content;

async function bundleOf(value) {
  const text = typeof value === "string" && !quotes ? value : inspect(value);
  const own =
    value !== null && typeof value === "object" && typeof value[DISPLAY] === "function" ? await value[DISPLAY]() : {};
  const data = { "text/plain": cut(text, TEXT_CHARS_MAX), ...own };
  return Object.fromEntries(Object.entries(data).map(([type, content]) => [type, contentOf(content)]));
}

/** Sends a value to the caller as a result. With `{ raw: true }` the value is an object by media type. */
globalThis.display = async (value, { raw = false } = {}) => {
  const data = raw
    ? Object.fromEntries(Object.entries(value).map(([type, content]) => [type, contentOf(content)]))
    : await bundleOf(value);
  sendAfterOutput({ type: "result", main: false, data });
};
globalThis.require = createRequire(`${process.cwd()}/`);

function describe(error) {
  if (!(error instanceof Error)) {
    const text = inspect(error);
    return { type: "error", name: "Error", value: text, traceback: `Uncaught ${text}` };
  }
  const name = error.code === "ERR_SCRIPT_EXECUTION_INTERRUPTED" ? "InterruptedError" : error.name;
  const stack = String(error.stack ?? error)
    .split("\n")
    .filter((line) => !/^ +at .*(?:node:|\[eval\]|eval at <anonymous>)/.test(line))
    .join("\n");
  return {
    type: "error",
    name: String(name),
    value: cut(String(error.message), TRACEBACK_CHARS_MAX),
    traceback: cut(stack, TRACEBACK_CHARS_MAX),
  };
}

function run({ number, code }) {
  const script = new vm.Script(code, {
    filename: `cell-${number}.js`,
    importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  return script.runInThisContext({ breakOnSigint: true });
}

async function execute(request) {
  const before = { ...process.env };
  ({ quotes, mark } = request);
  Object.assign(process.env, request.env);
  const interrupted = new Promise((_, reject) => {
    interrupt = () => reject(Object.assign(new Error("The execution was interrupted."), { name: "InterruptedError" }));
  });
  send({ type: "begun" });
  try {
    const outcome = await Promise.race([run(request), interrupted]);
    if (outcome?.value !== undefined)
      sendAfterOutput({ type: "result", main: true, data: await bundleOf(outcome.value) });
  } catch (error) {
    sendAfterOutput(describe(error));
  }
  interrupt = null;
  for (const name of Object.keys(request.env)) {
    if (name in before) process.env[name] = before[name];
    else delete process.env[name];
  }
  const ended = marked(END);
  mark = "";
  send({ type: "done", number: request.number, marked: ended });
}

process.on("SIGINT", () => interrupt?.());
process.on("uncaughtException", (error) => process.stderr.write(`${describe(error).traceback}\n`));
process.on("unhandledRejection", (error) => process.stderr.write(`${describe(error).traceback}\n`));

/** Requests come one at a time, so a line is read whole while nothing else is to do. */
const { Socket } = require("node:net");
let received = [];
const channel = new Socket({ fd: CHANNEL });
channel.on("data", (chunk) => {
  received.push(chunk);
  if (!chunk.includes(10)) return;
  const line = Buffer.concat(received).toString("utf8");
  received = [];
  void execute(JSON.parse(line));
});
channel.on("close", () => process.exit(0));
channel.on("error", () => process.exit(EXIT_WITHOUT_SERVER));
