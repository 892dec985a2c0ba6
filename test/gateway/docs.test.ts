import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { GATEWAY_ERRORS } from "../../src/contract/gateway-errors.ts";

test("every error code has its place in the manual, where docs_url points", () => {
  const manual = readFileSync(new URL("../../docs/gateway.md", import.meta.url), "utf8");
  const sections = new Map(manual.split(/^### /m).map((text) => [text.split("\n")[0], text]));
  for (const [code, row] of Object.entries(GATEWAY_ERRORS)) {
    const section = sections.get(code) ?? "";
    assert.ok(
      section.includes(`\`${row.status}\`, ${row.retryable ? "may be retried" : "do not retry"}.`),
      `docs/gateway.md lacks ${code}`,
    );
    assert.ok(section.includes(row.action), code);
  }
});
