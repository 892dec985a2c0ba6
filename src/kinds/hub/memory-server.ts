/**
 * The memory MCP server: stores messages in threads and finds them again. It uses the same threads, with the same
 * limits, as agents do. Each function has its own threads, which are deleted with the function.
 */
import { PlatformError } from "../../contract/errors.ts";
import type { McpServer } from "../../lib/mcp/server.ts";
import { integer, type Tool, text } from "../../lib/mcp/tool.ts";
import { toIso } from "../../lib/time/clock.ts";
import { THREAD_MESSAGES_MAX } from "../../store/threads.ts";
import type { Platform } from "../port.ts";
import { THREAD_ID } from "../thread/thread-id.ts";

export interface MemoryContext {
  deps: Platform;
  /** The function that owns the threads. */
  owner: string;
}

const TEXT_CHARS_MAX = 64 * 1024;
const ROLE_CHARS_MAX = 64;
const RECALL_DEFAULT = 50;

const thread = { thread: text("Id of the thread, chosen by whoever writes first") };

const TOOLS: Tool<MemoryContext>[] = [
  {
    name: "remember",
    description: "Add what was said to a thread.",
    properties: { ...thread, content: text("What was said"), role: text("Who said it; default user") },
    required: ["thread", "content"],
    async run({ deps: { store, clock, settings }, owner }, { thread: id, content, role = "user" }) {
      const said = {
        role: bounded("role", role, ROLE_CHARS_MAX),
        content: bounded("content", content, TEXT_CHARS_MAX),
      };
      const message = { ...said, at: toIso(clock.now()) };
      const { next_seq, first_seq } = await store.threads.append(owner, idOf(id), [message], settings.threadsKeptMs);
      return { messageCount: next_seq - first_seq };
    },
  },
  {
    name: "recall",
    description: "Read the newest messages of a thread, oldest first.",
    properties: { ...thread, limit: integer(`At most ${THREAD_MESSAGES_MAX}; default ${RECALL_DEFAULT}`) },
    required: ["thread"],
    async run({ deps: { store }, owner }, { thread: id, limit = RECALL_DEFAULT }) {
      const count = Math.max(1, Math.min(THREAD_MESSAGES_MAX, Number(limit)));
      const found = await store.threads.read(owner, idOf(id), count);
      return { messages: found?.messages ?? [] };
    },
  },
  {
    name: "forget",
    description: "Forget a thread.",
    properties: thread,
    required: ["thread"],
    run: async ({ deps: { store }, owner }, { thread: id }) => ({
      forgotten: await store.threads.remove(owner, idOf(id)),
    }),
  },
];

export const memoryServer = (version: string): McpServer<MemoryContext> => ({
  info: { name: "memory", version },
  instructions: "A memory for threads: remember what was said, recall it later.",
  tools: () => TOOLS,
  explain: (error) => (error instanceof PlatformError ? error.message : "The memory failed."),
});

function idOf(given: unknown): string {
  if (THREAD_ID.test(String(given))) return String(given);
  throw new PlatformError("bad_request", '"thread" must be 1 to 256 printable characters.');
}

function bounded(member: string, given: unknown, max: number): string {
  if (String(given).length <= max) return String(given);
  throw new PlatformError("bad_request", `"${member}" has at most ${max} characters.`);
}
