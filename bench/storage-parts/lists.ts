/** Pages of a long list of objects: the last pages of a drive cost what the first ones do. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { percentiles, table } from "../measure.ts";
import type { Bucket } from "./bucket.ts";

const PER_FOLDER = 1000;

export async function lists(bucket: Bucket, files: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const folder = join(files, "list", String(Math.floor(n / PER_FOLDER)).padStart(6, "0"));
    if (n % PER_FOLDER === 0) mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${n}`), "");
  }
  const pages: number[] = [];
  let seen = 0;
  for (let token = ""; ; ) {
    const at = performance.now();
    const query: [string, string][] = [
      ["list-type", "2"],
      ["prefix", "list/"],
    ];
    if (token !== "") query.push(["continuation-token", token]);
    const text = (await bucket.ask("GET", "", { query })).toString();
    pages.push(performance.now() - at);
    seen += text.split("<Contents>").length - 1;
    token = /<NextContinuationToken>([^<]+)</.exec(text)?.[1]?.replaceAll("&amp;", "&") ?? "";
    if (token === "") break;
  }
  if (seen !== count) throw new Error(`the list has ${seen} objects of ${count}`);
  const tenth = Math.max(1, Math.floor(pages.length / 10));
  const row = (name: string, times: number[]): Record<string, string | number> => {
    const { p50Ms, p99Ms } = percentiles(times);
    return { pages: name, count: times.length, p50: p50Ms, p99: p99Ms };
  };
  table(`a list of ${count} objects, pages of 1,000 (ms)`, [
    row("first tenth", pages.slice(0, tenth)),
    row("last tenth", pages.slice(-tenth)),
    row("all", pages),
  ]);
}
