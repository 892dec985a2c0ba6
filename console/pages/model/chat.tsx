/** A conversation with a model, or with two side by side: the answers as they come, with their tokens and times. */
import "./chat.css";
import { useRef, useState } from "preact/hooks";
import { type Answer, ask, type Round, useCostToday } from "../../api/chat.ts";
import { useAction } from "../../api/query.ts";
import { useList } from "../../api/rows.ts";
import type { Workload } from "../../api/workload.ts";
import { countOf, moneyOf, spanText } from "../../lib/format.ts";
import { nameOf } from "../../lib/members.ts";
import { fromYaml } from "../../lib/yaml.ts";
import { Button } from "../../ui/button.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Blank, Failure } from "../../ui/notice.tsx";
import { Budgets } from "./budgets.tsx";

export function ChatTab({ workload }: { workload: Workload }) {
  const [rounds, setRounds] = useState<readonly Round[]>([]);
  const [text, setText] = useState("");
  const [system, setSystem] = useState("");
  const [tools, setTools] = useState("");
  const [image, setImage] = useState("");
  const [other, setOther] = useState("");
  const ending = useRef<AbortController | null>(null);
  const models = [workload.name, ...(other === "" ? [] : [other])];
  const { run, busy, error } = useAction(async (said: string) => {
    const settings = { system, tools: tools.trim() === "" ? [] : ((await fromYaml(tools)) as unknown[]) };
    const asked: readonly Round[] = [...rounds, { said, image, answers: {} }];
    setRounds(asked);
    setText("");
    setImage("");
    const stop = new AbortController();
    ending.current = stop;
    const one = async (name: string): Promise<void> => {
      for await (const answer of ask({ ...workload, name }, settings, asked, stop.signal))
        setRounds((now) => withAnswer(now, name, answer));
    };
    const ends = await Promise.allSettled(models.map(one));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  });
  const submit = (): void => {
    if (!busy && text.trim() !== "") void run(text);
  };
  return (
    <div class={`chat${other === "" ? "" : " two"}`}>
      <Setup
        workload={workload}
        values={{ system, tools, other }}
        onInput={{ system: setSystem, tools: setTools, other: setOther }}
      />
      <div class="turns" role="log" aria-label="Conversation">
        {rounds.length === 0 ? <Blank title="Say something" text="The answer is shown as it comes." /> : null}
        {rounds.map((round, at) => (
          <RoundView key={at} round={round} models={models} />
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
        <Picture isThere={image !== ""} onPick={setImage} />
        {busy ? (
          <Button onClick={() => ending.current?.abort()}>Stop</Button>
        ) : (
          <Button kind="main" type="submit">
            Send
          </Button>
        )}
        <Button unable={rounds.length === 0 ? "There is nothing to clear" : null} onClick={() => setRounds([])}>
          Clear
        </Button>
      </form>
    </div>
  );
}

const withAnswer = (rounds: readonly Round[], model: string, answer: Answer): readonly Round[] =>
  rounds.map((round, at) =>
    at === rounds.length - 1 ? { ...round, answers: { ...round.answers, [model]: answer } } : round,
  );

interface SetupProps {
  workload: Workload;
  values: { system: string; tools: string; other: string };
  onInput: Readonly<Record<"system" | "tools" | "other", (value: string) => void>>;
}

function Setup({ workload: { workspace, name }, values, onInput }: SetupProps) {
  const { data: models = [] } = useList<unknown>(workspace, "/models");
  const { data: today } = useCostToday(workspace, name);
  const others = models.map(nameOf).filter((one) => one !== name);
  return (
    <div class="stack">
      <div class="setup">
        <Choice label="Beside it" value={values.other} choices={others} none="No other model" onInput={onInput.other} />
        <p class="quiet">
          {today === undefined
            ? ""
            : `Today ${moneyOf(today.cost)}, ${countOf(today.requests, "request")}${today.unpricedRequests > 0 ? ", some without a price" : ""}`}
        </p>
      </div>
      {[name, ...(values.other === "" ? [] : [values.other])].map((model) => (
        <Budgets key={model} workspace={workspace} model={model} />
      ))}
      <details>
        <summary>System message and tools</summary>
        <div class="stack">
          <Field label="System message" lines={3} value={values.system} onInput={onInput.system} />
          <Field
            label="Tools"
            lines={4}
            value={values.tools}
            onInput={onInput.tools}
            hint="A YAML or JSON list of definitions, as the chat API takes them. Calls are shown, not made."
          />
        </div>
      </details>
    </div>
  );
}

function RoundView({ round, models }: { round: Round; models: readonly string[] }) {
  return (
    <>
      <div class="turn user">
        <p>{round.said}</p>
        {round.image === "" ? null : <p class="quiet">with a picture</p>}
      </div>
      <div class="answers">
        {models.map((model) => {
          const answer = round.answers[model];
          return answer === undefined ? (
            <span key={model} />
          ) : (
            <div key={model} class="turn assistant">
              {models.length > 1 ? <strong>{model}</strong> : null}
              <p>{answer.content}</p>
              {answer.tools.map((tool) => (
                <p key={tool.name} class="mono">{`${tool.name}(${tool.arguments})`}</p>
              ))}
              <p class="quiet">{noteOf(answer)}</p>
            </div>
          );
        })}
      </div>
    </>
  );
}

const noteOf = ({ tokensIn, tokensOut, firstMs, allMs }: Answer): string =>
  [
    ...(tokensOut > 0 ? [`${tokensIn} tokens in, ${tokensOut} out`] : []),
    `first after ${spanText(firstMs)}, all after ${spanText(allMs)}`,
  ].join(", ");

/** Larger pictures are refused by providers. */
const PICTURE_BYTES_MAX = 4 * 1024 * 1024;

function Picture({ isThere, onPick }: { isThere: boolean; onPick(address: string): void }) {
  const picker = useRef<HTMLInputElement>(null);
  const read = (file: File | undefined): void => {
    if (file === undefined || file.size > PICTURE_BYTES_MAX) return;
    const reader = new FileReader();
    reader.addEventListener("load", () => onPick(String(reader.result)));
    reader.readAsDataURL(file);
  };
  return (
    <>
      <Button onClick={() => (isThere ? onPick("") : picker.current?.click())}>
        {isThere ? "Picture ×" : "Picture"}
      </Button>
      <input
        ref={picker}
        class="hidden-visually"
        type="file"
        accept="image/png,image/jpeg,image/webp,image/gif"
        aria-label="Picture to send"
        tabIndex={-1}
        onChange={(event) => read(event.currentTarget.files?.[0])}
      />
    </>
  );
}
