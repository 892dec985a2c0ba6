/** Sandboxes of the platform for agent services that run elsewhere. */
import { CONNECTION_OPTIONS, type CommandSpec, GROUPS } from "../command.ts";

const DETAILS = `Takes sessions from the queue of a self-hosted environment and runs each in a sandbox of its own, which is deleted when
the session ends. The environment's key is read from ANTHROPIC_ENVIRONMENT_KEY. See docs/environments.md.`;

export const environmentCommands: readonly CommandSpec[] = [
  {
    name: "environment",
    group: GROUPS.more,
    summary: "give agent services that run elsewhere sandboxes of this platform",
    commands: [
      {
        name: "claude",
        group: GROUPS.verbs,
        summary: "serve a self-hosted environment of Claude Managed Agents",
        details: DETAILS,
        options: [
          { flags: "--environment-id <id>", about: "the environment (ANTHROPIC_ENVIRONMENT_ID)" },
          { flags: "--sessions <number>", about: "sessions at a time, one sandbox each (default 4)" },
          { flags: "--image <image>", about: "image of the sandboxes" },
          { flags: "--memory <mb>", about: "memory of a sandbox in MB" },
          { flags: "--setup <line>", about: "shell line that prepares a sandbox (default: installs the official SDK)" },
          {
            flags: "--command <line>",
            about: "shell line that serves the session, as `ant beta:worker run` (default: the official SDK's worker)",
          },
          { flags: "--drain", about: "end when the queue is empty" },
          ...CONNECTION_OPTIONS,
        ],
        examples: [
          "berth environment claude --environment-id env_0123",
          "berth environment claude --drain --sessions 1",
        ],
        run: async (call) => (await import("../actions/environment.ts")).serveClaude(call),
      },
    ],
  },
];
