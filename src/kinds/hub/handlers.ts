import type { z } from "zod";
import type * as fields from "../../contract/fields.ts";
import { INTERPRETER_PORTS } from "../../node/images/base-names.ts";
import { knowsImage } from "../image/resolve.ts";
import { type Implementation, implement } from "../port.ts";
import { mcpHubList, sandboxHubList } from "./operations.ts";
import { HUB_SERVERS, hubImage } from "./servers.ts";

const MEMORY_DEFAULT_MB = 4096;

interface SandboxImage {
  name: string;
  displayName: string;
  description: string;
  ports?: z.infer<typeof fields.port>[];
}

const interpreterPorts = INTERPRETER_PORTS.map((target) => ({ target, protocol: "HTTP" as const }));

/** Descriptions of sandbox images. The list shows only those that the driver has. */
const SANDBOX_IMAGES: readonly SandboxImage[] = [
  {
    name: "base-image",
    displayName: "Base image",
    description: "The programs of the machine that the server runs on, read-only, with a private place to write.",
  },
  { name: "node", displayName: "Node.js", description: "The base image by the name that Node.js projects look for." },
  {
    name: "ts-app",
    displayName: "TypeScript",
    description: "The base image by the name that TypeScript apps look for.",
  },
  { name: "py-app", displayName: "Python", description: "The base image by the name that Python apps look for." },
  {
    name: "code-interpreter",
    displayName: "Code interpreter",
    description: "The base image with the code interpreter on ports 8888 and 49999: Python, JavaScript and TypeScript.",
    ports: interpreterPorts,
  },
  {
    name: "jupyter-server",
    displayName: "Code interpreter",
    description: "The code interpreter by the name that older clients look for.",
    ports: interpreterPorts,
  },
];

export const hubHandlers: readonly Implementation[] = [
  implement(sandboxHubList, async (_call, { settings, here }) => {
    const known = SANDBOX_IMAGES.map((entry) => ({ ...entry, image: `${settings.brand}/${entry.name}:latest` }));
    const there = await Promise.all(known.map(({ image }) => knowsImage(here.driver, image)));
    return known
      .filter((_, index) => there[index])
      .map((entry) => ({
        ...entry,
        memory: MEMORY_DEFAULT_MB,
        ports: entry.ports ?? [],
        coming_soon: false,
        enterprise: false,
        hidden: false,
      }));
  }),

  implement(mcpHubList, async (_call, { settings }) =>
    HUB_SERVERS.map(({ runs: _runs, ...server }) => ({
      ...server,
      image: hubImage(server, settings),
      transport: "http-stream",
      coming_soon: false,
      enterprise: false,
      hidden: false,
    })),
  ),
];
