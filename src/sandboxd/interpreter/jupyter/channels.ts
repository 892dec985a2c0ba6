/** `/api/kernels/{id}/channels`: a WebSocket that carries all channels of one kernel for one client. */
import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { ApiError, toApiError } from "../../http/api-error.ts";
import { acceptWebSocket, offeredProtocols, WebSocketConnection } from "../../http/websocket.ts";
import { DEFAULT_FRAMING, type Framing, V1_FRAMING, V1_PROTOCOL } from "./framing.ts";
import type { Kernel, KernelClient } from "./kernel.ts";
import type { Kernels } from "./kernels.ts";
import type { KernelMessage } from "./message.ts";
import { answer } from "./requests.ts";

const PATH = /^\/api\/kernels\/([^/]+)\/channels$/;
/** Beyond this the code of an execution waits for the client that asked for it. */
const BEHIND_BYTES = 1024 * 1024;
/** A client that watches the executions of others and is further behind is closed. Larger than the largest result. */
const BACKLOG_BYTES_MAX = 64 * 1024 * 1024;
const TRY_AGAIN_LATER = 1013;
const INVALID_MESSAGE = 1003;

export function acceptChannels(kernels: Kernels, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  socket.on("error", () => {}); // the client went away; `close` tells
  try {
    const id = PATH.exec((req.url ?? "/").split("?")[0] ?? "")?.[1];
    if (id === undefined) throw new ApiError(404, "There is no WebSocket here.");
    const kernel = kernels.find(decodeURIComponent(id));
    const isV1 = offeredProtocols(req).includes(V1_PROTOCOL);
    if (!acceptWebSocket(req, socket, isV1 ? V1_PROTOCOL : undefined)) return;
    new Channels(kernels, kernel, socket, isV1 ? V1_FRAMING : DEFAULT_FRAMING).start(head);
  } catch (error) {
    const { status } = error instanceof URIError ? { status: 400 } : toApiError(error);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  }
}

class Channels implements KernelClient {
  readonly #socket: WebSocketConnection;
  readonly #kernel: Kernel;
  readonly #framing: Framing;
  #draining: PromiseWithResolvers<void> | null = null;

  constructor(kernels: Kernels, kernel: Kernel, socket: Duplex, framing: Framing) {
    this.#kernel = kernel;
    this.#framing = framing;
    const take = (bytes: string | Buffer): void => {
      const request = framing.decode(bytes);
      if (request === null) this.#socket.close(INVALID_MESSAGE);
      else answer({ kernels, kernel, client: this, request }).catch((error: unknown) => console.error(error));
    };
    this.#socket = new WebSocketConnection(socket, {
      onText: take,
      onBinary: take,
      onClose: () => {
        kernel.detach(this);
        this.#draining?.resolve();
      },
    });
  }

  start(head: Buffer): void {
    this.#kernel.attach(this);
    this.#socket.start(head);
  }

  send(message: KernelMessage): void {
    const encoded = this.#framing.encode(message);
    if (typeof encoded === "string") this.#socket.send(encoded);
    else this.#socket.sendBinary(encoded);
    if (this.#socket.waiting > BACKLOG_BYTES_MAX) this.#socket.close(TRY_AGAIN_LATER);
  }

  get isBehind(): boolean {
    return this.#socket.open && this.#socket.waiting > BEHIND_BYTES;
  }

  async drained(): Promise<void> {
    if (!this.isBehind) return;
    if (this.#draining === null) {
      const draining = Promise.withResolvers<void>();
      this.#draining = draining;
      this.#socket.onDrain(draining.resolve);
    }
    await this.#draining.promise;
    this.#draining = null;
  }

  close(): void {
    this.#socket.close(1000);
  }
}
