import { createRequire } from "node:module";

/** Where Bun is, or null where it is not installed for this platform. */
export function findBun(): string | null {
  const require = createRequire(import.meta.url);
  const arch = process.arch === "arm64" ? "aarch64" : "x64";
  const candidates = [`@oven/bun-${process.platform}-${arch}/bin/bun`, "bun/bin/bun.exe"];
  for (const candidate of candidates) {
    try {
      return require.resolve(candidate);
    } catch {
      // Not installed under this name; optional dependencies come and go with the platform.
    }
  }
  return null;
}
