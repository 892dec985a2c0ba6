/** /watch/filesystem/{path}: changes below a folder, one JSON object per line. */

import { accessSync, constants, statSync } from "node:fs";
import { ApiError } from "../http/api-error.ts";
import type { Call } from "../http/call.ts";
import { writeChunk } from "../http/send.ts";
import { pathFromUrl, toBytes, toText } from "./byte-path.ts";
import { withSubject } from "./files-api.ts";
import { FolderWatch, type WatchEvent } from "./folder-watch.ts";

const KEEPALIVE_MS = 30_000;
/** Most events queued for a slow client. Further events are dropped, and the client is told. */
const WAITING_MAX = 10_000;
const RECURSIVE_SUFFIX = /\/\*\*\/?$/;

export async function watchFolder({ res, signal, query, params, daemon }: Call): Promise<void> {
  const raw = (params[0] ?? "").replace(/%2a/gi, "*").replace(/%2f(?=\*\*)/gi, "/");
  const recursive = RECURSIVE_SUFFIX.test(raw) || raw === "**";
  const path = pathFromUrl(raw === "**" ? "" : raw.replace(RECURSIVE_SUFFIX, ""), daemon.environment.pathBase);
  const stats = statSync(toBytes(path), { throwIfNoEntry: false });
  if (!stats) throw new ApiError(404, `${toText(path)}: no such file or directory`);
  if (!stats.isDirectory()) throw new ApiError(400, `${toText(path)} is not a directory.`);
  withSubject(path, () => accessSync(toBytes(path), constants.R_OK)); // the watcher itself cannot say why it failed
  const ignore = (query.get("ignore") ?? "").split(",").filter(Boolean);

  const waiting: WatchEvent[] = [];
  let wake = (): void => {};
  let dropped = false;
  const watch = FolderWatch.open(path, {
    recursive,
    onEvent: (event) => {
      if (ignore.some((part) => `${event.path}/${event.name}`.includes(part))) return;
      if (waiting.length < WAITING_MAX) waiting.push(event);
      else dropped = true;
      wake();
    },
  });
  signal.addEventListener("abort", () => wake());
  try {
    res.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" });
    res.flushHeaders();
    while (!signal.aborted) {
      const lines = waiting.splice(0).map((event) => `${JSON.stringify(event)}\n`);
      if (dropped)
        lines.push(`${JSON.stringify({ op: "", name: "", path: toText(path), error: "events were dropped" })}\n`);
      dropped = false;
      if (lines.length > 0 && !(await writeChunk(res, lines.join("")))) return;
      if (waiting.length > 0) continue;
      const timer = setTimeout(() => {
        waiting.length === 0 && void writeChunk(res, "[keepalive]\n");
        wake();
      }, KEEPALIVE_MS);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      clearTimeout(timer);
    }
  } finally {
    watch.close();
  }
}
