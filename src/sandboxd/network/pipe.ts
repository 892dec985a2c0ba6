/** Joins two sockets: bytes both ways, with backpressure; each direction closes on its own. */
import type { Socket } from "node:net";

export function pipeBoth(a: Socket, b: Socket, onClose: () => void): void {
  let open = 2;
  const closed = (): void => {
    open -= 1;
    if (open === 0) onClose();
  };
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.pipe(to);
    from.on("error", () => to.destroy());
    from.on("close", () => {
      // After a clean end the other direction may still be busy; after an error both are over.
      if (!from.readableEnded) to.destroy();
      closed();
    });
  }
}
