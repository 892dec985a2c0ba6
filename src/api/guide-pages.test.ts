import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, test } from "node:test";
import { GATEWAY_ERRORS } from "../contract/gateway-errors.ts";
import { createGuidePages } from "./guide-pages.ts";

const DOCS = new URL("../../docs/", import.meta.url);
const guides = readdirSync(DOCS, { recursive: true, encoding: "utf8" }).flatMap((file) =>
  file.endsWith(".md") ? [file.slice(0, -".md".length)] : [],
);

describe("the guides", () => {
  const pages = createGuidePages();

  test("link to guides and places that exist", async () => {
    const rendered = new Map(await Promise.all(guides.map(async (name) => [name, await pages.render(name)] as const)));
    for (const [name, html] of rendered) {
      for (const [, target = "", place] of html.matchAll(/href="(?:\/docs\/([a-z0-9/-]+))?(?:#([^"]*))?"/g)) {
        const page = rendered.get(target || name);
        assert.ok(page, `${name}.md links to ${target}.md, which is not there`);
        if (place)
          assert.ok(page.includes(`id="${place}"`), `${name}.md links to ${target}#${place}, which is not there`);
      }
      assert.doesNotMatch(html, /href="[^"]*\.md[#"]/, `${name}.md links out of the guides`);
    }
  });

  test("explain every error of the gateway where its answer points to", async () => {
    const page = await pages.render("gateway");
    for (const code of Object.keys(GATEWAY_ERRORS)) assert.ok(page.includes(`id="${code.toLowerCase()}"`), code);
  });

  test("are the only files that can be asked for", async () => {
    for (const name of [
      "absent",
      "../package",
      "..%2fpackage",
      "decisions/absent",
      "decisions/../tour",
      "a".repeat(61),
      "",
    ]) {
      await assert.rejects(pages.render(name), { code: "not_found" }, name);
    }
  });
});
