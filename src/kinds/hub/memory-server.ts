/**
 * The MCP server that remembers: what an agent says in a thread, it finds again there. Each function has a memory of its
 * own. Threads are short and expire, like the ones that the platform keeps for agents.
 */
import { PlatformError } from "../../contract/errors.ts";
import { DAY_MS } from "../../lib/clock.ts";
import type { McpServer } from "../../lib/mcp-server.ts";
import { integer, type Tool, text } from "../../lib/mcp-tool.ts";
import { createSealedBox } from "../../lib/sealed-box.ts";
import type { Deps } from "../port.ts";

export interface MemoryContext {
  deps: Deps;
  /** The function whose memory it is. */
  owner: string;
}

interface Entry {
  role: string;
  text: string;
  at: string;
}

const KEEP_MS = 30 * DAY_MS;
/** The oldest go first. A conversation longer than this is no longer read by anybody. */
const ENTRIES_MAX = 200;
const THREAD_CHARS_MAX = 512 * 1024;
const TEXT_CHARS_MAX = 32 * 1024;
const NAME_CHARS_MAX = 128;

const thread = { thread: text("Name of the thread, chosen by whoever writes first") };

const TOOLS: Tool<MemoryContext>[] = [
  {
    name: "remember",
    description: "Add what was said to a thread.",
    properties: { ...thread, text: text("What was said"), role: text("Who said it; default user") },
    required: ["thread", "text"],
    async run(context, { thread: name, text: said, role = "user" }) {
      if (String(said).length > TEXT_CHARS_MAX) throw tooLong("text", TEXT_CHARS_MAX);
      const at = new Date(context.deps.clock.now()).toISOString();
      const entry = { role: String(role).slice(0, NAME_CHARS_MAX), text: String(said), at };
      return { entries: await change(context, name, (entries) => bounded([...entries, entry])) };
    },
  },
  {
    name: "recall",
    description: "Read the latest entries of a thread, oldest first.",
    properties: { ...thread, limit: integer(`At most ${ENTRIES_MAX}; default 50`) },
    required: ["thread"],
    async run(context, { thread: name, limit = 50 }) {
      const kept = await context.deps.store.records.read(keyOf(context, name));
      const entries = kept === null ? [] : open(context, name, kept);
      return { entries: entries.slice(-Math.max(1, Math.min(ENTRIES_MAX, Number(limit)))) };
    },
  },
  {
    name: "forget",
    description: "Empty a thread.",
    properties: thread,
    required: ["thread"],
    run: async (context, { thread: name }) => ({ entries: await change(context, name, () => []) }),
  },
];

export const memoryServer = (version: string): McpServer<MemoryContext> => ({
  info: { name: "memory", version },
  instructions: "A memory for threads: remember what was said, recall it later.",
  tools: () => TOOLS,
  explain: (error) => (error instanceof PlatformError ? error.message : "The memory failed."),
});

/** Answers with how many there are afterwards. */
function change(context: MemoryContext, name: unknown, next: (entries: Entry[]) => Entry[]): Promise<number> {
  const { store, clock } = context.deps;
  return store.records.update(keyOf(context, name), clock.now() + KEEP_MS, (kept) => {
    const entries = next(kept === null ? [] : open(context, name, kept));
    return { value: boxOf(context).seal(JSON.stringify(entries), keyOf(context, name)), result: entries.length };
  });
}

const open = (context: MemoryContext, name: unknown, kept: string): Entry[] =>
  JSON.parse(boxOf(context).open(kept, keyOf(context, name))) as Entry[];

/** People say things to agents that nobody who reads the database needs to know. */
const boxOf = ({ deps }: MemoryContext) => createSealedBox(deps.keyFor("mcp-memory"));

function keyOf({ owner }: MemoryContext, name: unknown): string {
  if (String(name).length > NAME_CHARS_MAX) throw tooLong("thread", NAME_CHARS_MAX);
  return `mcp-memory/${owner}/${name}`;
}

function bounded(entries: Entry[]): Entry[] {
  const kept = entries.slice(-ENTRIES_MAX);
  for (let chars = kept.reduce((sum, entry) => sum + entry.text.length, 0); chars > THREAD_CHARS_MAX; )
    chars -= kept.shift()?.text.length ?? chars;
  return kept;
}

const tooLong = (member: string, max: number): PlatformError =>
  new PlatformError("bad_request", `"${member}" has at most ${max} characters.`);
