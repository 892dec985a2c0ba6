/** Conversations with an agent. The address has the thread; what the agent keeps of it is shown again later. */
import "../model/chat.css";
import "./agent.css";
import { useRef, useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { forgetThread, sayTo, threadsChanged, useThread, useThreads } from "../../api/threads.ts";
import type { Workload } from "../../api/workload.ts";
import { textOfMessage } from "../../lib/answer-text.ts";
import { ageOf, countOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { textAt } from "../../lib/members.ts";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { Blank, Failure } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";

export function AgentChatTab({ workload }: { workload: Workload }) {
  // A thread that nobody has written to has its id already, so that the first message stays in the same place.
  const [fresh, setFresh] = useState<string>(() => crypto.randomUUID());
  const thread = queryOf("thread") || fresh;
  const begin = (): void => {
    setFresh(crypto.randomUUID());
    setQuery({ thread: "" });
  };
  return (
    <div class="threads">
      <ThreadList workload={workload} thread={thread} onNew={begin} />
      <Conversation key={thread} workload={workload} thread={thread} isNew={thread === fresh} onForgotten={begin} />
    </div>
  );
}

function ThreadList({ workload, thread, onNew }: { workload: Workload; thread: string; onNew(): void }) {
  const [pages, setPages] = useState(1);
  const { data, error } = useThreads(workload, pages);
  return (
    <nav class="stack" aria-label="Threads">
      <Button onClick={onNew}>New thread</Button>
      {error ? <Failure error={error} /> : null}
      {data?.threads.length === 0 ? <p class="quiet">The agent keeps no threads yet.</p> : null}
      <ul class="thread-list">
        {data?.threads.map(({ id, messageCount, updatedAt }) => (
          <li key={id}>
            <button type="button" aria-current={id === thread} onClick={() => setQuery({ thread: id })}>
              <span class="mono">{id}</span>
              <span class="quiet">
                {countOf(messageCount, "message")}
                {updatedAt === undefined ? "" : `, ${ageOf(updatedAt)} ago`}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {data?.hasMore ? <Button onClick={() => setPages(pages + 1)}>Show more threads</Button> : null}
    </nav>
  );
}

interface Turn {
  said: string;
  answer: string;
  /** When the agent had last written to the thread before this turn: it shows the turn itself once that changes. */
  keptAt: string;
}

interface ConversationProps {
  workload: Workload;
  thread: string;
  isNew: boolean;
  onForgotten(): void;
}

function Conversation({ workload, thread, isNew, onForgotten }: ConversationProps) {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [text, setText] = useState("");
  const ending = useRef<AbortController | null>(null);
  const ask = useAction(async (said: string) => {
    const stop = new AbortController();
    ending.current = stop;
    setText("");
    setTurns((now) => [...now, { said, answer: "", keptAt }]);
    try {
      for await (const answer of sayTo(workload, thread, said, stop.signal))
        setTurns((now) => now.map((turn, at) => (at === now.length - 1 ? { ...turn, answer } : turn)));
    } finally {
      void threadsChanged(workload);
    }
  });
  const { data: kept, error } = useThread(workload, thread, !ask.busy);
  const keptAt = kept?.updatedAt ?? "";
  const messages = kept?.messages ?? [];
  const own = turns.filter((turn) => turn.keptAt === keptAt);
  const noForget = useRefusal(workload.workspace, "agentThreadDelete");
  const forget = useAction(async () => {
    await forgetThread(workload, thread);
    say("The thread is forgotten.");
    onForgotten();
  });
  const failures = [error, forget.error, ask.error].filter((one) => one && one.name !== "AbortError");
  return (
    <div class="chat">
      <div class="row">
        <span class="quiet grow">
          Thread <span class="mono">{thread}</span>
        </span>
        <Button
          kind="bare"
          busy={forget.busy}
          unable={messages.length === 0 ? "The agent keeps nothing of this thread" : noForget}
          onClick={() => void forget.run(null)}
        >
          Forget
        </Button>
      </div>
      <div class="turns" role="log" aria-label="Conversation">
        {messages.length === 0 && own.length === 0 ? (
          <Blank
            title={isNew ? "Say something" : "Nothing is kept"}
            text="The agent gets it as inputs, with the id of this thread. The answer is shown as it comes."
          />
        ) : null}
        {messages.map((message, at) => (
          <Bubble key={at} by={textAt(message, "role")} text={textOfMessage(message)} />
        ))}
        {own.flatMap(({ said, answer }, at) => [
          <Bubble key={`said ${at}`} by="user" text={said} />,
          ...(answer === "" ? [] : [<Bubble key={`answer ${at}`} by="assistant" text={answer} />]),
        ])}
      </div>
      {failures.map((one) => (one ? <Failure key={one.message} error={one} /> : null))}
      <form
        class="say"
        onSubmit={(event) => {
          event.preventDefault();
          if (!ask.busy && text.trim() !== "") void ask.run(text);
        }}
      >
        <Field label="Message" value={text} onInput={setText} />
        {ask.busy ? (
          <Button onClick={() => ending.current?.abort()}>Stop</Button>
        ) : (
          <Button kind="main" type="submit">
            Send
          </Button>
        )}
      </form>
    </div>
  );
}

/** Agents write what they like, so it is shown as text and nothing else. */
const Bubble = ({ by, text }: { by: string; text: string }) => (
  <div class={`turn ${by === "user" ? "user" : "assistant"}`}>
    {by === "user" || by === "assistant" ? null : <strong>{by || "message"}</strong>}
    <p>{text}</p>
  </div>
);
