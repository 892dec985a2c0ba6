/** One request to a workload as its callers make it: any method, path and body, with the answer as it is. */
import "./agent.css";
import { useState } from "preact/hooks";
import { useAction } from "../../api/query.ts";
import { addressOf, askWorkload, type Workload } from "../../api/workload.ts";
import { textOf } from "../../lib/bounded.ts";
import { spanText } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Failure } from "../../ui/notice.tsx";
import { callLine } from "../../views/lines.ts";

const METHODS = ["POST", "GET", "PUT", "PATCH", "DELETE"];
/** The browser lays out no more text than this at a time. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
const BODIES: Readonly<Record<string, string>> = { agents: '{"inputs": "hello"}' };

interface Reply {
  status: number;
  type: string;
  ms: number;
  text: string;
}

export function CallTab({ workload }: { workload: Workload }) {
  const [method, setMethod] = useState("POST");
  const [path, setPath] = useState("/");
  const [thread, setThread] = useState("");
  const [body, setBody] = useState(BODIES[workload.plural] ?? "{}");
  const [reply, setReply] = useState<Reply | null>(null);
  const hasBody = method !== "GET" && body !== "";
  const headers = {
    ...(hasBody ? { "content-type": "application/json" } : {}),
    ...(thread === "" ? {} : { "x-service-thread-id": thread }),
  };
  const { run, busy, error } = useAction(async () => {
    setReply(null);
    const begun = performance.now();
    const sent = hasBody ? { body: new Blob([body]) } : {};
    const response = await askWorkload(workload, { method, path: rooted(path), headers, ...sent });
    const text = await textOf(response, ANSWER_BYTES_MAX);
    const type = response.headers.get("content-type") ?? "";
    setReply({ status: response.status, type, ms: performance.now() - begun, text });
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) void run(null);
      }}
    >
      <div class="call-line">
        <Choice label="Method" value={method} choices={METHODS} onInput={setMethod} />
        <Field label="Path" value={path} onInput={setPath} />
        {workload.plural === "agents" ? (
          <Field label="Thread" value={thread} onInput={setThread} placeholder="None" />
        ) : null}
      </div>
      {method === "GET" ? null : <Field label="Body" lines={6} value={body} onInput={setBody} />}
      <div class="row">
        <Button kind="main" type="submit" busy={busy}>
          Send
        </Button>
      </div>
      <Code
        text={callLine(addressOf(workload) + rooted(path), method, headers, hasBody ? body : "")}
        noun="The command"
      />
      {error ? <Failure error={error} /> : null}
      {reply === null ? null : (
        <section class="stack" aria-label="Answer">
          <p>
            <strong>{reply.status}</strong>{" "}
            <span class="quiet">
              {reply.type} after {spanText(reply.ms)}
            </span>
          </p>
          <Code text={reply.text} noun="The answer" />
        </section>
      )}
    </form>
  );
}

const rooted = (path: string): string => (path.startsWith("/") ? path : `/${path}`);
