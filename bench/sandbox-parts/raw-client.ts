/**
 * JSON over HTTP/1.1 from raw sockets: the client shares the machine with what it measures, so it must be light. Every
 * request has a connection of its own while it is under way; connections are used again.
 */
import { connect, type Socket } from "node:net";

export interface RawClient {
  /** Answers with the body of a 200; anything else is thrown. */
  ask(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<unknown>;
  close(): void;
}

export function openRawClient(url: string, headers: Record<string, string>): RawClient {
  const { hostname: host, port } = new URL(url);
  const common = Object.entries({ host: `${host}:${port}`, accept: "application/json", ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("");
  const idle: Connection[] = [];
  return {
    async ask(method, path, body) {
      const text = body === undefined ? "" : JSON.stringify(body);
      const framing = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`;
      const head = `${method} ${path} HTTP/1.1\r\n${common}${body === undefined ? "" : framing}\r\n`;
      const connection = idle.pop() ?? new Connection(connect({ host, port: Number(port), noDelay: true }));
      const answer = await connection.exchange(head + text);
      idle.push(connection);
      if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
      return JSON.parse(answer.body);
    },
    close() {
      for (const connection of idle.splice(0)) connection.close();
    },
  };
}

interface Answer {
  status: number;
  body: string;
}

class Connection {
  readonly #socket: Socket;
  #received = "";
  #waiting: { resolve(answer: Answer): void; reject(error: Error): void } | null = null;

  constructor(socket: Socket) {
    this.#socket = socket.setEncoding("utf8");
    socket.on("data", (text: string) => this.#take(text));
    socket.on("error", (error) => this.#waiting?.reject(error));
    socket.on("close", () => this.#waiting?.reject(new Error("the connection was closed")));
  }

  exchange(request: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#waiting = null;
    this.#socket.destroy();
  }

  #take(text: string): void {
    this.#received += text;
    const answer = readAnswer(this.#received);
    if (!answer) return;
    this.#received = "";
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.resolve(answer);
  }
}

/** Null until all of it is there. */
function readAnswer(text: string): Answer | null {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const status = Number(text.slice(9, 12));
  const length = /\ncontent-length: *(\d+)/i.exec(text.slice(0, end + 2))?.[1];
  const rest = text.slice(end + 4);
  if (length !== undefined) return Buffer.byteLength(rest) < Number(length) ? null : { status, body: rest };
  return rest.endsWith("0\r\n\r\n") ? { status, body: joinChunks(rest) } : null;
}

/** Sizes are bytes and these are characters; where a chunk is not all ASCII the answer is refused, not misread. */
function joinChunks(text: string): string {
  const parts: string[] = [];
  for (let at = 0; ; ) {
    const line = text.indexOf("\r\n", at);
    const size = Number.parseInt(text.slice(at, line), 16);
    if (size === 0) return parts.join("");
    const chunk = text.slice(line + 2, line + 2 + size);
    if (Buffer.byteLength(chunk) !== size) throw new Error("an answer in chunks that are not ASCII");
    parts.push(chunk);
    at = line + 2 + size + 2;
  }
}
