import assert from "node:assert/strict";
import { test } from "node:test";
import { findProvider } from "./providers/catalogue.ts";
import { hasDotSegment, upstreamPath } from "./upstream-path.ts";

/** provider, base path, what the caller wrote, where it leads */
const TABLE: [string, string, string, string][] = [
  ["openai", "", "/v1/chat/completions", "/v1/chat/completions"],
  ["openai", "", "/chat/completions", "/v1/chat/completions"],
  ["openai", "", "/v1/responses?x=%2F", "/v1/responses?x=%2F"],
  ["openai", "/v1", "/v1/embeddings", "/v1/embeddings"],
  ["openai", "/proxy/openai", "/embeddings", "/proxy/openai/v1/embeddings"],
  ["openai", "", "/v1/files//a%2Fb", "/v1/files//a%2Fb"],
  ["anthropic", "", "/v1/messages", "/v1/messages"],
  ["anthropic", "", "/messages?beta=true", "/v1/messages?beta=true"],
  ["groq", "", "/openai/v1/chat/completions", "/openai/v1/chat/completions"],
  ["groq", "", "/v1/chat/completions", "/openai/v1/chat/completions"],
  ["groq", "/openai/v1", "/chat/completions", "/openai/v1/chat/completions"],
  ["deepseek", "", "/beta/completions", "/beta/completions"],
  ["gemini", "", "/v1beta/models/other:generateContent", "/v1beta/models/the-model:generateContent"],
  [
    "gemini",
    "",
    "/models/other:streamGenerateContent?alt=sse",
    "/v1beta/models/the-model:streamGenerateContent?alt=sse",
  ],
  ["gemini", "", "/v1/models/other:generateContent?key=mine&alt=sse", "/v1/models/the-model:generateContent?alt=sse"],
  ["gemini", "", "/v1beta/models/{model}:generateContent", "/v1beta/models/the-model:generateContent"],
  ["gemini", "", "/v1/embeddings", "/v1beta/openai/embeddings"],
  ["cohere", "", "/v2/chat", "/v2/chat"],
  ["cohere", "", "/v1/chat/completions", "/compatibility/v1/chat/completions"],
  ["cohere", "", "/v1/embed", "/v1/embed"],
  ["azure-openai-service", "", "/v1/chat/completions", "/openai/v1/chat/completions"],
  ["azure-openai-service", "", "/openai/v1/responses", "/openai/v1/responses"],
  [
    "azure-openai-service",
    "",
    "/openai/deployments/other/chat/completions?api-version=2024-10-21",
    "/openai/deployments/the-model/chat/completions?api-version=2024-10-21",
  ],
  [
    "azure-openai-service",
    "/openai/v1",
    "/openai/responses?api-version=2025-04-01-preview",
    "/openai/responses?api-version=2025-04-01-preview",
  ],
  ["gemini", "", "/v1beta/models/other%3AgenerateContent", "/v1beta/models/the-model%3AgenerateContent"],
  ["openai-compatible", "/v1", "/chat/completions", "/v1/chat/completions"],
];

for (const [name, basePath, from, to] of TABLE) {
  test(`${name}${basePath ? ` at ${basePath}` : ""}: ${from} leads to ${to}`, () => {
    const provider = findProvider(name);
    assert.ok(provider);
    const [path = "", query] = from.split("?");
    const input = {
      provider,
      basePath,
      path,
      query: query === undefined ? "" : `?${query}`,
      model: "the-model",
      config: {},
    };
    assert.equal(upstreamPath(input), to);
  });
}

test("a dated version in the connection chooses addressing by deployment", () => {
  const provider = findProvider("azure-openai");
  assert.ok(provider);
  const input = {
    provider,
    basePath: "",
    path: "/v1/chat/completions",
    query: "",
    model: "gpt",
    config: { apiVersion: "2024-10-21" },
  };
  assert.equal(upstreamPath(input), "/openai/deployments/gpt/chat/completions?api-version=2024-10-21");
  assert.equal(
    upstreamPath({ ...input, path: "/embeddings", query: "?a=1" }),
    "/openai/deployments/gpt/embeddings?a=1&api-version=2024-10-21",
  );
  assert.equal(
    upstreamPath({ ...input, path: "/openai/deployments/other/chat/completions", query: "?api-version=2025-01-01" }),
    "/openai/deployments/gpt/chat/completions?api-version=2025-01-01",
  );
  assert.equal(upstreamPath({ ...input, path: "/openai/responses" }), "/openai/responses?api-version=2024-10-21");
});

test("climbing paths are seen in every spelling", () => {
  for (const path of ["/..", "/a/../b", "/.", "/%2e%2E/x", "/a/.%2e", "/a\\..\\b"])
    assert.equal(hasDotSegment(path), true, path);
  for (const path of ["/a..b", "/...", "/v1/files/a.txt", "//"]) assert.equal(hasDotSegment(path), false, path);
});
