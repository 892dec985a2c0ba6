/**
 * A journal of model usage that is not in the ledger yet, as JSON lines in the data folder. A line is written before
 * the caller has the whole answer, and survives a kill of the process right after; a commit per request would cost more
 * than the request. The last line of a request counts. A file that is long enough is followed by a new one, and is
 * removed when the ledger has everything in it.
 */
import { closeSync, ftruncateSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";

export interface TokenJournal {
  /** Requests of an earlier process that the ledger may not have: to be recorded, then forgotten. */
  readonly left: readonly ModelTokens[];
  write(tokens: ModelTokens): void;
  /** Called when the ledger has the request. */
  forget(requestId: string): void;
  close(): void;
}

/** The usage of a finished request. */
const modelTokens = z.object({
  requestId: z.string(),
  accountId: z.string(),
  workspace: z.string(),
  /** Name and uid of the requested model. */
  model: z.string(),
  modelUid: z.string(),
  subject: z.object({ type: z.string(), id: z.string() }).nullable(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  cachedInputTokens: z.number(),
  /** The provider's charge for the request, in nano-USD. */
  costNanoUsd: z.number(),
  /** False when the price is unknown and a cost of zero means nothing. */
  priced: z.boolean(),
  /** True when the provider did not report all of the usage. Absent in lines of older versions. */
  estimated: z.boolean().default(false),
  /** True when the answer was kept by the platform. Absent in lines of older versions. */
  fromCache: z.boolean().default(false),
  /** True when the kept answer was that of a question with the same meaning. Absent in lines of older versions. */
  fromSimilar: z.boolean().default(false),
  startedAtMs: z.number(),
});

export type ModelTokens = z.infer<typeof modelTokens>;

/** Size at which a new file is begun. A start reads this much in a few milliseconds. */
const FILE_MAX_BYTES = 1024 * 1024;
const NAME = /^(\d+)\.jsonl$/;

interface JournalFile {
  path: string;
  /** Null when the file takes no more lines. */
  fd: number | null;
  bytes: number;
  /** Number of requests whose last line is in this file. */
  open: number;
}

type OpenFile = JournalFile & { fd: number };

export function openTokenJournal(folder: string, onError: (error: unknown) => void): TokenJournal {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const holding = new Map<string, { file: JournalFile; line: string }>();
  const earlier = readdirSync(folder)
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
  let number = earlier.at(-1) ?? 0;
  let current: JournalFile | null = null;

  function hold(requestId: string, file: JournalFile, line: string): void {
    const before = holding.get(requestId)?.file;
    file.open += 1;
    holding.set(requestId, { file, line });
    if (before) letGo(before);
  }

  function letGo(file: JournalFile): void {
    file.open -= 1;
    if (file.open > 0) return;
    if (file !== current) {
      end(file);
      rmSync(file.path, { force: true });
    } else if (file.fd !== null) {
      ftruncateSync(file.fd);
      file.bytes = 0;
    }
  }

  /** Closes the current file for writing and removes it if no request in it is open; otherwise `forget` removes it. */
  function retire(): void {
    if (!current) return;
    end(current);
    if (current.open === 0) rmSync(current.path, { force: true });
    current = null;
  }

  function writable(): OpenFile {
    if (current && current.fd !== null && current.bytes < FILE_MAX_BYTES) return current as OpenFile;
    retire();
    number += 1;
    const path = join(folder, `${number}.jsonl`);
    const file = { path, fd: openSync(path, "a", 0o600), bytes: 0, open: 0 };
    current = file;
    return file;
  }

  function append(line: string): void {
    const file = writable();
    const written = writeSync(file.fd, line);
    file.bytes += written;
    if (written === Buffer.byteLength(line)) return;
    retire(); // otherwise the next line would be joined to this partial one
    throw new Error(`${file.path} takes no more: is the disk full?`);
  }

  function readEarlier(path: string): ModelTokens[] {
    const file: JournalFile = { path, fd: null, bytes: 0, open: 0 };
    const found = readLines(path, onError);
    for (const tokens of found) hold(tokens.requestId, file, "");
    if (found.length === 0) rmSync(path, { force: true });
    return found;
  }

  const left = new Map(
    earlier.flatMap((n) => readEarlier(join(folder, `${n}.jsonl`))).map((tokens) => [tokens.requestId, tokens]),
  );
  return {
    left: [...left.values()],
    write(tokens) {
      const line = lineOf(tokens);
      if (holding.get(tokens.requestId)?.line === line) return;
      append(line);
      if (current) hold(tokens.requestId, current, line);
    },
    forget(requestId) {
      const held = holding.get(requestId);
      holding.delete(requestId);
      if (held) letGo(held.file);
    },
    close: retire,
  };
}

function end(file: JournalFile): void {
  if (file.fd !== null) closeSync(file.fd);
  file.fd = null;
}

/** Writes these fields only: callers may pass objects with more. */
function lineOf(tokens: ModelTokens): string {
  const { requestId, accountId, workspace, model, modelUid, subject, priced, estimated, startedAtMs } = tokens;
  const { fromCache, fromSimilar, inputTokens, outputTokens, cachedInputTokens, costNanoUsd } = tokens;
  const who = { requestId, accountId, workspace, model, modelUid, subject };
  const amounts = {
    inputTokens,
    outputTokens,
    cachedInputTokens,
    costNanoUsd,
    priced,
    estimated,
    fromCache,
    fromSimilar,
    startedAtMs,
  };
  return `${JSON.stringify({ ...who, ...amounts } satisfies ModelTokens)}\n`;
}

/** Skips a line that a kill or a full disk cut off: its request was never answered. */
function readLines(path: string, onError: (error: unknown) => void): ModelTokens[] {
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.flatMap((line, index) => {
    try {
      return modelTokens.parse(JSON.parse(line));
    } catch (error) {
      onError(new Error(`line ${index + 1} of ${path} cannot be read, and is left out`, { cause: error }));
      return [];
    }
  });
}
