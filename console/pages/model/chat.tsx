/** A conversation with a model: the answer as it comes, with its tokens and the time to the first one. */
import "./chat.css";
import { useRef, useState } from "preact/hooks";
import { useAction } from "../../api/query.ts";
import { sendToWorkload, type Workload } from "../../api/workload.ts";
import { eventsOf } from "../../lib/events.ts";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { Blank, Failure } from "../../ui/notice.tsx";

interface Turn {
  role: "system" | "user" | "assistant";
  content: string;
  note?: string;
}

interface Chunk {
  choices?: { delta?: { content?: string } }[];
  usage?: { prompt_tokens?: number; completion_tokens?: number } | null;
}

export function ChatTab({ workload }: { workload: Workload }) {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [text, setText] = useState("");
  const [system, setSystem] = useState("");
  const ending = useRef<AbortController | null>(null);
  const { run, busy, error } = useAction(async (said: string) => {
    const asked: Turn[] = [...turns, { role: "user", content: said }];
    setTurns(asked);
    setText("");
    ending.current = new AbortController();
    for await (const answer of ask(workload, system, asked, ending.current.signal)) setTurns([...asked, answer]);
  });
  const submit = (): void => {
    if (!busy && text.trim() !== "") void run(text);
  };
  return (
    <div class="chat">
      <details>
        <summary>System message</summary>
        <Field label="System message" lines={3} value={system} onInput={setSystem} />
      </details>
      <div class="turns" role="log" aria-label="Conversation">
        {turns.length === 0 ? <Blank title="Say something" text="The answer is shown as it comes." /> : null}
        {turns.map(({ role, content, note }, at) => (
          <div key={at} class={`turn ${role}`}>
            <p>{content}</p>
            {note === undefined ? null : <p class="quiet">{note}</p>}
          </div>
        ))}
      </div>
      {error && error.name !== "AbortError" ? <Failure error={error} /> : null}
      <form
        class="say"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <Field label="Message" value={text} onInput={setText} />
        {busy ? (
          <Button onClick={() => ending.current?.abort()}>Stop</Button>
        ) : (
          <Button kind="main" type="submit">
            Send
          </Button>
        )}
        <Button unable={turns.length === 0 ? "There is nothing to clear" : null} onClick={() => setTurns([])}>
          Clear
        </Button>
      </form>
    </div>
  );
}

/** Yields the answer again and again while it grows. */
async function* ask(
  workload: Workload,
  system: string,
  turns: readonly Turn[],
  signal: AbortSignal,
): AsyncGenerator<Turn, void> {
  const begun = performance.now();
  let [content, firstMs, tokens] = ["", 0, ""];
  const messages = [...(system === "" ? [] : [{ role: "system", content: system }]), ...turns].map(
    ({ role, content: said }) => ({ role, content: said }),
  );
  const body = { messages, stream: true, stream_options: { include_usage: true } };
  const response = await sendToWorkload(workload, { method: "POST", path: "/chat/completions", body, signal });
  if (response.body === null) return;
  for await (const { data } of eventsOf(response.body)) {
    if (data === "" || data === "[DONE]") continue;
    const { choices, usage } = JSON.parse(data) as Chunk;
    const more = choices?.[0]?.delta?.content ?? "";
    if (more !== "" && firstMs === 0) firstMs = performance.now() - begun;
    if (usage) tokens = `${usage.prompt_tokens ?? 0} tokens in, ${usage.completion_tokens ?? 0} out, `;
    content += more;
    const note = `${tokens}first after ${Math.round(firstMs)} ms, all after ${Math.round(performance.now() - begun)} ms`;
    yield { role: "assistant", content, note };
  }
}
