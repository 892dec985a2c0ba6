/** A one-colour image derived from the prompt: small, valid, and always the same. */
import { createHash } from "node:crypto";
import { crc32, deflateSync } from "node:zlib";
import type { LocalAnswer } from "../local-answer.ts";
import { seconds } from "../openai/chat-answer.ts";
import { json, type MockContext } from "./answers.ts";

const SIDE_DEFAULT = 256;
const SIDE_MAX = 2048;
const COUNT_MAX = 10;

export function imagesAnswer({ body, nowMs }: MockContext): LocalAnswer {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(String(body.size ?? "")) ?? [];
  const count = typeof body.n === "number" ? Math.min(Math.max(Math.floor(body.n), 1), COUNT_MAX) : 1;
  const picture = pngOf(String(body.prompt ?? ""), side(width), side(height)).toString("base64");
  // The mock serves no files, so a requested URL is a data: URL.
  const one = body.response_format === "url" ? { url: `data:image/png;base64,${picture}` } : { b64_json: picture };
  return json(200, { created: seconds(nowMs), data: Array.from({ length: count }, () => one) });
}

const side = (text: string | undefined): number => Math.min(Math.max(Number(text ?? SIDE_DEFAULT), 1), SIDE_MAX);

/** One bit for each point, all of them the first colour of the palette. */
function pngOf(prompt: string, width: number, height: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([1, 3, 0, 0, 0], 8);
  const colour = createHash("sha256").update(prompt).digest().subarray(0, 3);
  const rows = Buffer.alloc((1 + Math.ceil(width / 8)) * height);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("PLTE", colour),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const out = Buffer.alloc(named.length + 8);
  out.writeUInt32BE(data.length, 0);
  named.copy(out, 4);
  out.writeUInt32BE(crc32(named), named.length + 4);
  return out;
}
