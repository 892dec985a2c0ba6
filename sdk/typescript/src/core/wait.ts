/** Waiting that ends with a signal. */

export function pause(ms: number, signal?: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const ended = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", ended);
      resolve();
    }, ms);
    signal?.addEventListener("abort", ended, { once: true });
  });
}

/** Calls `look` until its value is not undefined; pauses grow from `firstMs` to `mostMs`. */
export async function poll<Value>(
  look: () => Promise<Value | undefined>,
  { firstMs, mostMs, signal }: { firstMs: number; mostMs: number; signal?: AbortSignal | undefined },
): Promise<Value> {
  for (let waitMs = firstMs; ; waitMs = Math.min(waitMs * 1.5, mostMs)) {
    const value = await look();
    if (value !== undefined) return value;
    await pause(waitMs, signal);
  }
}
