/** What goes wrong between the gateway and a provider, and how each caller hears of it in its own dialect. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect as connectHttp2, createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, createServer as createNetServer } from "node:net";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import OpenAI from "openai";
import { freePort } from "../free-port.ts";
import type { StartGateway, TestGateway } from "./gateway-harness.ts";
import { parseEvents, type StreamEvent } from "./golden.ts";
import { sendJson, sendPieces, startEvents, startUpstream } from "./upstream-server.ts";

const CHAT = { messages: [{ role: "user", content: "Hi" }] };
const ANSWER = {
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
};

const post = (gateway: TestGateway, path: string, body: unknown = CHAT, init: RequestInit = {}): Promise<Response> =>
  fetch(gateway.url("m") + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...init,
  });

async function errorOf(
  response: Response,
): Promise<{ code: string; message: string; retryable: boolean; status: number }> {
  return ((await response.json()) as { error: { code: string; message: string; retryable: boolean; status: number } })
    .error;
}

const codeIn = (events: StreamEvent[]): string | undefined =>
  (events.at(-1)?.data as { error?: { code?: string } } | undefined)?.error?.code;

const chunk = (content: string): string =>
  `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;

/** A stream's first words in each tongue, and the error event its caller must get when it breaks off there. */
const TONGUES: { type: string; path: string; body: unknown; start: string; error: unknown }[] = [
  {
    type: "openai",
    path: "/v1/chat/completions",
    body: { ...CHAT, stream: true },
    start: chunk("Hel"),
    error: { error: { type: "platform_error", param: null, code: "PROVIDER_UNAVAILABLE" } },
  },
  {
    type: "openai",
    path: "/v1/responses",
    body: { input: "Hi", stream: true },
    start: 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hel"}\n\n',
    error: { type: "error", code: "PROVIDER_UNAVAILABLE", param: null, sequence_number: 0 },
  },
  {
    type: "anthropic",
    path: "/v1/messages",
    body: { ...CHAT, max_tokens: 9, stream: true },
    start:
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}\n\n',
    error: { type: "error", error: { type: "api_error", code: "PROVIDER_UNAVAILABLE" } },
  },
  {
    type: "anthropic",
    path: "/v1/chat/completions",
    body: { ...CHAT, stream: true },
    start:
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}\n\n',
    error: { error: { type: "platform_error", param: null, code: "PROVIDER_UNAVAILABLE" } },
  },
  {
    type: "gemini",
    path: "/v1beta/models/x:streamGenerateContent?alt=sse",
    body: { contents: [] },
    start: 'data: {"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}\n\n',
    error: { error: { code: 502, status: "UNAVAILABLE" } },
  },
];

export function troubleSuite(startGateway: StartGateway): void {
  for (const tongue of TONGUES) {
    test(`${tongue.type} ${tongue.path}: a reset in the middle is told in the stream`, async () => {
      await using upstream = await startUpstream(async (_request, res) => {
        startEvents(res);
        // Half an event is not passed on: what follows must be readable.
        await sendPieces(res, [tongue.start, tongue.start.slice(0, 20)]);
        res.destroy();
      });
      await using gateway = await startGateway({ m: { type: tongue.type, baseUrl: upstream.baseUrl } });
      const response = await post(gateway, tongue.path, tongue.body);
      const events = parseEvents(await response.text());
      assert.equal(response.status, 200);
      const last = events.at(-1)?.data as { error?: { message?: string }; message?: string };
      assert.match(last.error?.message ?? last.message ?? "", /broke off/);
      delete last.error?.message;
      delete last.message;
      assert.deepEqual(last, tongue.error);
      const [event] = await gateway.recorded(1);
      assert.deepEqual([event?.outcome, event?.estimated, event?.status], ["interrupted", true, 200]);
      assert.equal(upstream.requests.length, 1, "an answer that has begun is not asked for again");
    });

    test(`${tongue.type} ${tongue.path}: the head of a stream does not wait for its first event`, async () => {
      const opened = Promise.withResolvers<ServerResponse>();
      await using upstream = await startUpstream((_request, res) => {
        startEvents(res);
        opened.resolve(res);
      });
      await using gateway = await startGateway({ m: { type: tongue.type, baseUrl: upstream.baseUrl } });
      const response = await post(gateway, tongue.path, tongue.body);
      assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
      const reader = response.body?.getReader();
      (await opened.promise).write(tongue.start);
      const first = await reader?.read();
      assert.match(Buffer.from(first?.value ?? []).toString(), /Hel/);
      await reader?.cancel();
    });
  }

  test("a malformed answer: passed on to who speaks the same tongue, refused where it must be read", async () => {
    await using upstream = await startUpstream((_request, res) => sendJson(res, "<html>oops"));
    await using same = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    assert.equal(await (await post(same, "/v1/chat/completions")).text(), "<html>oops");
    assert.equal((await same.recorded(1))[0]?.estimated, true);
    await using other = await startGateway({ m: { type: "anthropic", baseUrl: upstream.baseUrl } });
    const response = await post(other, "/v1/chat/completions");
    assert.equal(response.status, 502);
    assert.equal((await errorOf(response)).code, "PROVIDER_BAD_RESPONSE");
  });

  test("a malformed event ends a translated stream with an error", async () => {
    await using upstream = await startUpstream((_request, res) => {
      startEvents(res);
      res.end("data: {not json}\n\ndata: {}\n\n");
    });
    await using gateway = await startGateway({ m: { type: "gemini", baseUrl: upstream.baseUrl } });
    const events = parseEvents(await (await post(gateway, "/v1/chat/completions", { ...CHAT, stream: true })).text());
    assert.equal(events.length, 1);
    assert.equal(codeIn(events), "PROVIDER_BAD_RESPONSE");
  });

  test("a stream that ends early is told to the official client as an error", async () => {
    await using upstream = await startUpstream((_request, res) => {
      startEvents(res);
      res.end(TONGUES[3]?.start);
    });
    await using gateway = await startGateway({ m: { type: "anthropic", baseUrl: upstream.baseUrl } });
    const client = new OpenAI({ baseURL: `${gateway.url("m")}/v1`, apiKey: "k", maxRetries: 0 });
    const stream = await client.chat.completions.create({
      model: "m",
      stream: true,
      messages: [{ role: "user", content: "Hi" }],
    });
    await assert.rejects(async () => {
      for await (const _chunk of stream);
    }, /ends early/);
  });

  test("429 with Retry-After, then success", async () => {
    await using upstream = await startUpstream((_request, res, number) => {
      if (number === 1) sendJson(res, { error: { message: "slow down" } }, 429, { "retry-after": "0" });
      else sendJson(res, ANSWER);
    });
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    const response = await post(gateway, "/v1/chat/completions");
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("x-service-attempts"), "2");
    assert.equal(upstream.requests[0]?.body, upstream.requests[1]?.body);
    const [event] = await gateway.recorded(1);
    assert.deepEqual([event?.attempts, event?.inputTokens, event?.outcome], [2, 5, "completed"]);
  });

  test("a longer pause than the gateway waits is the caller's to make", async () => {
    await using upstream = await startUpstream((_request, res) =>
      sendJson(res, { error: { message: "slow down" } }, 429, { "retry-after": "60" }),
    );
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    const response = await post(gateway, "/v1/chat/completions");
    assert.deepEqual([response.status, response.headers.get("retry-after")], [429, "60"]);
    assert.deepEqual(await response.json(), { error: { message: "slow down" } });
    assert.equal(upstream.requests.length, 1);
  });

  test("a connection cut before the answer is tried again; a server that stays broken is reported as it is", async () => {
    await using cut = await startUpstream((_request, res, number) => {
      if (number < 3) res.destroy();
      else sendJson(res, ANSWER);
    });
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: cut.baseUrl } });
    assert.equal((await post(gateway, "/v1/chat/completions")).status, 200);
    await using broken = await startUpstream((_request, res) => sendJson(res, { error: { message: "broken" } }, 503));
    await using other = await startGateway({ m: { type: "openai", baseUrl: broken.baseUrl } });
    const response = await post(other, "/v1/chat/completions");
    assert.deepEqual([response.status, await response.json()], [503, { error: { message: "broken" } }]);
    assert.equal(broken.requests.length, 3);
    assert.deepEqual((await other.recorded(1))[0]?.outcome, "failed");
  });

  test("nobody listens: the error says so and may be retried", async () => {
    const baseUrl = `http://127.0.0.1:${await freePort()}`;
    await using gateway = await startGateway({ m: { type: "openai", baseUrl } });
    const error = await errorOf(await post(gateway, "/v1/chat/completions"));
    assert.deepEqual([error.code, error.status, error.retryable], ["PROVIDER_UNAVAILABLE", 502, true]);
  });

  test("a refused key is the platform's trouble, not the caller's", async () => {
    await using upstream = await startUpstream((_request, res) =>
      sendJson(res, { error: { message: "bad key stored-key" } }, 401),
    );
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    const response = await post(gateway, "/v1/chat/completions");
    const text = await response.text();
    assert.equal(response.status, 502);
    assert.match(text, /PROVIDER_AUTHENTICATION_FAILED/);
    assert.ok(!text.includes("stored-key") && !JSON.stringify(gateway.logs).includes("stored-key"));
  });

  test("a redirect is not followed with the key", async () => {
    await using upstream = await startUpstream((_request, res) => {
      res.writeHead(307, { location: "http://elsewhere.example/" });
      res.end();
    });
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    assert.equal((await errorOf(await post(gateway, "/v1/chat/completions"))).code, "PROVIDER_BAD_RESPONSE");
  });

  test("no first byte in time, and silence in the middle, are two different errors", async () => {
    await using upstream = await startUpstream((request, res) => {
      if (request.json.stream !== true) return;
      startEvents(res);
      res.write(chunk("Hel"));
    });
    const retry = { retriesMax: 0, baseMs: 1, maxMs: 1, retryAfterMaxMs: 1 };
    const models = { m: { type: "openai", baseUrl: upstream.baseUrl } };
    await using hasty = await startGateway(models, { limits: { firstByteTimeoutMs: 100, retry } });
    const never = await post(hasty, "/v1/chat/completions");
    assert.deepEqual([never.status, (await errorOf(never)).code], [504, "PROVIDER_TIMEOUT"]);
    await using restless = await startGateway(models, { limits: { idleTimeoutMs: 100, retry } });
    const half = parseEvents(await (await post(restless, "/v1/chat/completions", { ...CHAT, stream: true })).text());
    assert.equal(codeIn(half), "PROVIDER_IDLE_TIMEOUT");
  });

  test("a caller that goes away takes the provider's connection with it", async () => {
    await using upstream = await startUpstream((_request, res) => {
      startEvents(res);
      res.write(chunk("Hello there, this is a long answer"));
    });
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    const abort = new AbortController();
    const response = await post(gateway, "/v1/chat/completions", { ...CHAT, stream: true }, { signal: abort.signal });
    await response.body?.getReader().read();
    abort.abort();
    await (await upstream.received(1)).closed;
    const [event] = await gateway.recorded(1);
    assert.deepEqual([event?.outcome, event?.estimated], ["aborted", true]);
    assert.ok((event?.outputTokens ?? 0) >= 8, "what was seen is counted");
    assert.ok((event?.inputTokens ?? 0) > 0);
  });

  test("a caller that goes away before the answer, or between two tries, is noticed too", async () => {
    await using upstream = await startUpstream((_request, res, number) => {
      if (number === 1) return;
      sendJson(res, {}, 500, { "retry-after": "2" });
    });
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    for (const number of [1, 2]) {
      const abort = new AbortController();
      const asked = post(gateway, "/v1/chat/completions", CHAT, { signal: abort.signal });
      await upstream.received(number);
      if (number === 2) await (await upstream.received(2)).closed;
      abort.abort();
      await assert.rejects(asked);
      const events = await gateway.recorded(number);
      assert.deepEqual(
        events.map((event) => event.outcome),
        Array(number).fill("aborted"),
      );
    }
    assert.equal(upstream.requests.length, 2);
  });

  test("a caller that does not read makes the provider wait", async () => {
    const piece = Buffer.from(chunk("x".repeat(64 * 1024)));
    const pieces = 1000;
    let sent = 0;
    const full = Promise.withResolvers<void>();
    await using upstream = await startUpstream(async (_request, res) => {
      startEvents(res);
      for (; sent < pieces; sent += 1) {
        if (res.write(piece)) continue;
        full.resolve();
        await new Promise((resolve) => res.once("drain", resolve));
      }
      res.end("data: [DONE]\n\n");
    });
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    const response = await post(gateway, "/v1/chat/completions", { ...CHAT, stream: true });
    await full.promise;
    assert.ok(sent < pieces / 2, `${sent} of ${pieces} pieces were taken from the provider`);
    let bytes = 0;
    for await (const part of response.body ?? []) bytes += (part as Uint8Array).length;
    assert.equal(bytes, piece.length * pieces + "data: [DONE]\n\n".length);
  });

  test("an answer compressed against the request is read through and counted", async () => {
    await using upstream = await startUpstream((request, res) => {
      const stream = request.json.stream === true;
      const text = stream
        ? `${chunk("Hello")}data: ${JSON.stringify({ choices: [], usage: ANSWER.usage })}\n\ndata: [DONE]\n\n`
        : JSON.stringify(ANSWER);
      res.writeHead(200, {
        "content-type": stream ? "text/event-stream" : "application/json",
        "content-encoding": "gzip",
      });
      res.end(gzipSync(text));
    });
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    const whole = await post(gateway, "/v1/chat/completions");
    assert.equal(whole.headers.get("content-encoding"), null);
    assert.deepEqual(await whole.json(), ANSWER);
    const streamed = await post(gateway, "/v1/chat/completions", { ...CHAT, stream: true });
    assert.equal(await streamed.text(), `${chunk("Hello")}data: [DONE]\n\n`);
    for (const event of await gateway.recorded(2)) assert.deepEqual([event.inputTokens, event.estimated], [5, false]);
  });

  /** A server that answers every connection with the same bytes and closes it. */
  async function startRaw(bytes: string): Promise<AsyncDisposable & { baseUrl: string }> {
    const server = createNetServer((socket) => {
      // The gateway may be gone before the bytes are.
      socket.on("error", () => {});
      socket.once("data", () => socket.end(bytes));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return {
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
    };
  }

  test("a header that cannot be passed on ends in an answer, not in silence", async () => {
    const body = '{"choices":[]}';
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-note: ☃\r\ncontent-length: ${body.length}`;
    await using upstream = await startRaw(`${head}\r\n\r\n${body}`);
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    const response = await post(gateway, "/v1/chat/completions");
    assert.equal(await response.text(), body);
    assert.equal((await gateway.recorded(1)).length, 1);
  });

  test("what is not HTTP at all is a bad response", async () => {
    await using upstream = await startRaw("SSH-2.0-OpenSSH_9.2\r\n");
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    const error = await errorOf(await post(gateway, "/v1/chat/completions"));
    assert.deepEqual([error.code, error.status], ["PROVIDER_BAD_RESPONSE", 502]);
  });

  test("a very long JSON answer is passed on without being kept, and still counted", async () => {
    const data = Array.from({ length: 300 }, (_, index) => ({ index, embedding: Array(1024).fill(0.123456789) }));
    const text = JSON.stringify({ data, usage: { prompt_tokens: 77, total_tokens: 77 } });
    await using upstream = await startUpstream((_request, res) => sendJson(res, text));
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    assert.equal(await (await post(gateway, "/v1/embeddings", { input: "a" })).text(), text);
    assert.ok(text.length > 2 * 1024 * 1024);
    const [event] = await gateway.recorded(1);
    assert.deepEqual([event?.inputTokens, event?.estimated], [77, false]);
  });

  test("a stream under way is finished before the gateway stops, and a new request is told to come back", async () => {
    const opened = Promise.withResolvers<ServerResponse>();
    await using upstream = await startUpstream((_request, res) => {
      startEvents(res);
      res.write(chunk("Hel"));
      opened.resolve(res);
    });
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
    const response = await post(gateway, "/v1/chat/completions", { ...CHAT, stream: true });
    const reader = response.body?.getReader();
    await reader?.read();
    let drained = false;
    const draining = gateway.drain().then(() => {
      drained = true;
    });
    const late = await post(gateway, "/v1/chat/completions");
    assert.deepEqual([late.status, (await errorOf(late)).code], [503, "SHUTTING_DOWN"]);
    assert.equal(drained, false);
    (await opened.promise).end(`${chunk("lo")}data: [DONE]\n\n`);
    let rest = "";
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read())
      rest += Buffer.from(part.value).toString();
    assert.match(rest, /"lo"[\s\S]*\[DONE\]/);
    await draining;
    assert.equal((await gateway.recorded(1))[0]?.outcome, "completed");
  });

  test("callers over HTTP/2 are served the same", async () => {
    await using upstream = await startUpstream((_request, res, number) => {
      if (number === 1) return sendJson(res, ANSWER);
      startEvents(res);
      res.write(chunk("Hel"));
      res.destroy();
    });
    await using gateway = await startGateway(
      { m: { type: "openai", baseUrl: upstream.baseUrl } },
      { limits: { bodyMaxBytes: 1000 } },
    );
    const server = createHttp2Server((req, res) => gateway.serve(req as never, res as never));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const ask = async (body: unknown): Promise<[number, string]> => {
      const stream = session.request({ ":method": "POST", ":path": "/acme/models/m/v1/chat/completions" });
      stream.end(JSON.stringify(body));
      const [headers] = (await once(stream, "response")) as [{ ":status": number }];
      let text = "";
      for await (const part of stream) text += String(part);
      return [headers[":status"], text];
    };
    assert.deepEqual(await ask(CHAT), [200, JSON.stringify(ANSWER)]);
    const [, broken] = await ask({ ...CHAT, stream: true });
    assert.match(broken, /PROVIDER_UNAVAILABLE/);
    assert.equal((await ask({ ...CHAT, x: "y".repeat(2000) }))[0], 413);
    session.close();
    server.close();
  });
}
