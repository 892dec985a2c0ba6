import type { Implementation } from "../port.ts";
import { nodeOfSandbox } from "./its-node.ts";
import { pause } from "./pause.ts";
import { resize } from "./resize.ts";

export const sandboxHandlers: readonly Implementation[] = [pause, resize].map((handler) => ({
  ...handler,
  node: nodeOfSandbox,
}));
