/** An interactive terminal inside a sandbox. */
import { ApiError } from "../../client/api-error.ts";
import { type Invocation, text } from "../command.ts";
import { openSandbox } from "../sandbox-door.ts";

const COLS_DEFAULT = 80;
const ROWS_DEFAULT = 24;
/** The byte a terminal sends for end of input (Ctrl-D). */
const END_OF_INPUT = "\x04";

export async function terminal(call: Invocation): Promise<undefined> {
  const sandbox = await openSandbox(text(call.args[0]) ?? "", call);
  const query = new URLSearchParams({
    cols: String(process.stdout.columns ?? COLS_DEFAULT),
    rows: String(process.stdout.rows ?? ROWS_DEFAULT),
    flow: "ack",
    sessionId: text(call.options.session) ?? `cli-${process.pid}-${call.context.now()}`,
    // WebSocket clients cannot set headers; the gateway removes the token before the sandbox sees the request.
    token: await sandbox.bearer(),
  });
  const socket = new WebSocket(`${sandbox.url.replace(/^http/, "ws")}/terminal/ws?${query}`);
  await opened(socket, sandbox.url);
  if (process.stdin.isTTY) call.context.note("connected; the session ends with the shell (Ctrl-D)");
  const release = attach(socket);
  try {
    await closed(socket);
  } finally {
    release();
  }
  return undefined;
}

function opened(socket: WebSocket, url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.addEventListener("open", () => resolve(), { once: true });
    socket.addEventListener(
      "error",
      () => reject(new ApiError({ status: 0, code: "unreachable", message: `${url}/terminal/ws cannot be opened.` })),
      { once: true },
    );
  });
}

const closed = (socket: WebSocket): Promise<void> =>
  new Promise((resolve) => {
    socket.addEventListener("close", () => resolve(), { once: true });
    let acknowledges = false;
    socket.addEventListener("message", ({ data: frame }) => {
      const { type, data = "" } = JSON.parse(String(frame)) as { type: string; data?: string };
      if (type === "window") acknowledges = true;
      else if (type === "error") process.stderr.write(`${data}\n`);
      else if (type === "output")
        process.stdout.write(data, () => {
          if (acknowledges && socket.readyState === WebSocket.OPEN)
            socket.send(JSON.stringify({ type: "ack", chars: data.length }));
        });
    });
  });

/** Connects this terminal with the socket; the returned function restores the terminal. */
function attach(socket: WebSocket): () => void {
  const { stdin, stdout } = process;
  const send = (frame: object): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
  };
  const onInput = (data: string): void => send({ type: "input", data });
  const onEnd = (): void => send({ type: "input", data: END_OF_INPUT });
  const onResize = (): void => send({ type: "resize", cols: stdout.columns, rows: stdout.rows });
  if (stdin.isTTY) stdin.setRawMode(true);
  stdin.setEncoding("utf8").on("data", onInput).on("end", onEnd);
  stdout.on("resize", onResize);
  return () => {
    stdin.off("data", onInput).off("end", onEnd).pause();
    stdout.off("resize", onResize);
    if (stdin.isTTY) stdin.setRawMode(false);
  };
}
