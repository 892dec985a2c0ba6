/**
 * One client of a terminal session, and how much output it still has to take. A client that says so in its request
 * (`flow=ack`) acknowledges what it has shown; of the others the daemon knows what waits in their socket.
 */
import type { WebSocketConnection } from "../http/websocket.ts";

/** Output sent ahead of what the client has shown, in characters: what is still shown after Ctrl-C. */
export const WINDOW_CHARS = 64 * 1024;
/** The same for clients without acknowledgements. Proxies on the way hold some output of their own. */
const SOCKET_BYTES_MAX = 256 * 1024;

export class Viewer {
  readonly #client: WebSocketConnection;
  readonly #acknowledges: boolean;
  readonly #onRoom: (viewer: Viewer) => void;
  #unshownChars = 0;
  #isFull = false;
  /** Gets no output until it has room again; then its screen is drawn anew. */
  isBehind = false;

  constructor(client: WebSocketConnection, acknowledges: boolean, onRoom: (viewer: Viewer) => void) {
    this.#client = client;
    this.#acknowledges = acknowledges;
    this.#onRoom = onRoom;
    if (acknowledges) client.send(JSON.stringify({ type: "window", chars: WINDOW_CHARS }));
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  /** `message` is the frame that carries `chars` characters of output. */
  send(message: string, chars: number): void {
    this.#client.send(message);
    if (this.#acknowledges) this.#unshownChars += chars;
    if (this.#isFull || !this.#isOverLimit()) return;
    this.#isFull = true;
    if (!this.#acknowledges) this.#client.onDrain(() => this.#look());
  }

  acknowledge(chars: number): void {
    if (!(chars > 0)) return;
    this.#unshownChars = Math.max(0, this.#unshownChars - chars);
    this.#look();
  }

  close(): void {
    this.#client.close(1000);
  }

  #look(): void {
    if (!this.#isFull || this.#isOverLimit()) return;
    this.#isFull = false;
    this.#onRoom(this);
  }

  #isOverLimit(): boolean {
    return this.#acknowledges ? this.#unshownChars >= WINDOW_CHARS : this.#client.waiting > SOCKET_BYTES_MAX;
  }
}
