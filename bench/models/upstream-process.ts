/** A provider that costs almost nothing: one fixed answer, or one fixed stream, for every request. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const EVENTS = 100;

const usage = { prompt_tokens: 20, completion_tokens: 100, total_tokens: 120 };
const head = { id: "chatcmpl-1", created: 1, model: "gpt-4o-mini" };
const answer = Buffer.from(
  JSON.stringify({
    ...head,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(100) }, finish_reason: "stop" }],
    usage,
  }),
);
const event = (choices: unknown[], more = {}): string =>
  `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices, ...more })}\n\n`;
const word = event([{ index: 0, delta: { content: "word " }, finish_reason: null }]);
const last = `${event([], { usage })}data: [DONE]\n\n`;

const server = createServer((req, res) => {
  let body = "";
  req.setEncoding("latin1");
  req.on("data", (chunk: string) => {
    body += chunk;
  });
  req.on("end", () => {
    if (!body.includes('"stream":true')) {
      res.writeHead(200, { "content-type": "application/json", "content-length": answer.length });
      res.end(answer);
      return;
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    let sent = 0;
    const next = (): void => {
      if (sent === EVENTS) {
        res.end(last);
        return;
      }
      sent += 1;
      res.write(word);
      setImmediate(next);
    };
    next();
  });
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
