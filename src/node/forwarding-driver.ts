/** A driver whose calls go on to another one. Drivers that change a few calls of another start from this one. */
import type { Driver } from "./driver.ts";

export interface ForwardingOptions extends Pick<Driver, "name" | "node"> {
  target(): Driver | Promise<Driver>;
}

export const forwardingDriver = ({ name, node, target }: ForwardingOptions): Driver => ({
  name,
  node,
  capability: async (wanted) => (await target()).capability(wanted),
  probe: async () => (await target()).probe(),
  create: async (spec, options) => (await target()).create(spec, options),
  observe: async (uid) => (await target()).observe(uid),
  list: async () => (await target()).list(),
  waitExit: async (uid, options) => (await target()).waitExit(uid, options),
  prolong: async (uid, endsAtMs) => (await target()).prolong(uid, endsAtMs),
  stats: async (uid) => (await target()).stats(uid),
  readOutput: async (uid, stream, offset, bytesMax) => (await target()).readOutput(uid, stream, offset, bytesMax),
  destroy: async (uid, options) => (await target()).destroy(uid, options),
  stop: async (workloads) => (await target()).stop(workloads),
});
