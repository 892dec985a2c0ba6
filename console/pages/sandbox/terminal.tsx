/** A terminal in the sandbox. It comes back by itself when the connection breaks; the shell waits meanwhile. */
import "@xterm/xterm/css/xterm.css";
import "./sandbox.css";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { useEffect, useRef } from "preact/hooks";
import { openSocket, type Workload } from "../../api/workload.ts";
import { styleNonce } from "../../lib/settings.ts";

const AGAIN_MIN_MS = 300;
const AGAIN_MAX_MS = 10_000;

export interface ShellProps {
  workload: Workload;
  sessionId: string;
  label: string;
  isShown: boolean;
}

export function Shell({ workload, sessionId, label, isShown }: ShellProps) {
  const place = useRef<HTMLDivElement>(null);
  const focus = useRef<(() => void) | null>(null);
  useEffect(() => {
    if (!place.current) return;
    const attached = attach(place.current, workload, sessionId);
    focus.current = attached.focus;
    return attached.close;
  }, []);
  useEffect(() => {
    if (isShown) focus.current?.();
  }, [isShown]);
  return <section class="tty" aria-label={label} hidden={!isShown} ref={place} />;
}

function attach(place: HTMLElement, workload: Workload, sessionId: string): { focus(): void; close(): void } {
  const terminal = new Terminal({
    cursorBlink: true,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
    fontSize: 13,
    scrollback: 10_000,
    theme: { background: "#14181b", foreground: "#e5e8ea", cursor: "#57bcc3", selectionBackground: "#57bcc355" },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  openWithNonce(terminal, place);
  // A terminal that is not shown has no size; it keeps the one that it had.
  const resize = (): void => {
    if (!place.hidden) fit.fit();
  };
  resize();
  const line = connect(workload, terminal, sessionId);
  const sizes = new ResizeObserver(resize);
  sizes.observe(place);
  return {
    focus: () => terminal.focus(),
    close() {
      sizes.disconnect();
      line.close();
      terminal.dispose();
    },
  };
}

function connect(workload: Workload, terminal: Terminal, sessionId: string): { close(): void } {
  let [socket, isClosed, waitMs] = [null as WebSocket | null, false, AGAIN_MIN_MS];
  const send = (frame: object): void => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
  };
  const again = (): void => {
    if (isClosed) return;
    setTimeout(() => void open(), waitMs);
    waitMs = Math.min(2 * waitMs, AGAIN_MAX_MS);
  };
  async function open(): Promise<void> {
    if (isClosed) return;
    const size = { cols: String(terminal.cols), rows: String(terminal.rows) };
    const next = await openSocket(workload, "/terminal/ws", { ...size, sessionId, flow: "ack" }).catch(() => null);
    if (next === null) return again();
    socket = next;
    next.addEventListener("open", () => {
      waitMs = AGAIN_MIN_MS;
    });
    // The sandbox sends no more than the window ahead of what is shown, so that Ctrl-C ends what is seen, too.
    let acknowledges = false;
    next.addEventListener("message", ({ data }) => {
      const { type, data: text = "" } = JSON.parse(String(data)) as { type: string; data?: string };
      if (type === "window") acknowledges = true;
      else if (type === "error") terminal.write(text);
      else if (type === "output")
        terminal.write(text, () => {
          if (acknowledges && next === socket) send({ type: "ack", chars: text.length });
        });
    });
    next.addEventListener("close", again);
  }
  terminal.onData((data) => send({ type: "input", data }));
  terminal.onResize(({ cols, rows }) => send({ type: "resize", cols, rows }));
  void open();
  return {
    close() {
      isClosed = true;
      socket?.close();
    },
  };
}

/** The terminal writes sheets of its own, which the policy of the page allows with its nonce only. */
function openWithNonce(terminal: Terminal, place: HTMLElement): void {
  const make = document.createElement.bind(document);
  const withNonce = (tag: string, options?: ElementCreationOptions): HTMLElement => {
    const element = make(tag, options);
    if (tag === "style") element.nonce = styleNonce;
    return element;
  };
  Object.defineProperty(document, "createElement", { value: withNonce, configurable: true });
  try {
    terminal.open(place);
  } finally {
    Reflect.deleteProperty(document, "createElement"); // the method of all documents is there again
  }
}
