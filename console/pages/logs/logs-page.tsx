/** What workloads wrote: the newest lines at the end, followed while they come. */
import "./logs.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useAnswer } from "../../api/query.ts";
import type { Workload } from "../../api/workload.ts";
import { countOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { titleOf } from "../../lib/titles.ts";
import { Button } from "../../ui/button.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";

const KINDS = ["sandboxes", "agents", "functions", "jobs", "applications"];
const LEVELS = ["", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
const EVERY_MS = 2000;
const LINES_MAX = "1000";

interface LogLine {
  timestamp: string;
  message: string;
  severity: number;
  workload: string;
}

/** From this number on a line is an error (OpenTelemetry). */
const ERROR_FROM = 17;
const WARNING_FROM = 13;

export const LogsTab = ({ workload }: { workload: Workload }) => (
  <Logs workspace={workload.workspace} plural={workload.plural} name={workload.name} />
);

export function LogsPage({ workspace }: { workspace: string }) {
  const plural = queryOf("kind") || "sandboxes";
  return (
    <>
      <h1>Logs</h1>
      <div class="row">
        {KINDS.map((kind) => (
          <Button key={kind} kind={kind === plural ? "main" : "plain"} onClick={() => setQuery({ kind })}>
            {titleOf(kind)}
          </Button>
        ))}
      </div>
      <Logs key={plural} workspace={workspace} plural={plural} name="" />
    </>
  );
}

function Logs({ workspace, plural, name }: { workspace: string; plural: string; name: string }) {
  const search = queryOf("text");
  const severity = queryOf("severity");
  const [isPaused, setPaused] = useState(false);
  const { data, error } = useAnswer({
    key: ["logs", workspace, plural, name, search, severity],
    everyMs: isPaused ? undefined : EVERY_MS,
    ask: async (signal) => {
      const query = { resourceType: plural, workloadIds: name, search, severity, limit: LINES_MAX };
      return linesOf(await call<Answer>({ path: "/observability/logs", query, workspace, signal }));
    },
  });
  return (
    <div class="stack">
      <div class="filters">
        <input
          class="input"
          type="search"
          data-key="/"
          aria-label="Text in the line"
          placeholder="Text in the line"
          value={search}
          onInput={(event) => setQuery({ text: event.currentTarget.value })}
        />
        <select
          class="input"
          aria-label="Severity"
          value={severity}
          onChange={(event) => setQuery({ severity: event.currentTarget.value })}
        >
          {LEVELS.map((level) => (
            <option key={level} value={level}>
              {level === "" ? "Every severity" : level}
            </option>
          ))}
        </select>
        <Button onClick={() => setPaused(!isPaused)}>{isPaused ? "Follow" : "Pause"}</Button>
        <Button unable={data?.length ? null : "There are no lines"} onClick={() => save(data ?? [])}>
          Download
        </Button>
        <span class="quiet">{data === undefined ? "" : `${countOf(data.length, "line")} of the last hour`}</span>
      </div>
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.length === 0 ? (
        <Blank
          title="No lines in the last hour"
          line={`berth logs ${plural.replace(/(?:e?s)$/, "")}/NAME --since 1d`}
        />
      ) : null}
      {data?.length ? <Lines lines={data} isFollowing={!isPaused} isNamed={name === ""} /> : null}
    </div>
  );
}

type Answer = Readonly<Record<string, { logs?: Omit<LogLine, "workload">[] }>>;

const linesOf = (answer: Answer): LogLine[] =>
  Object.entries(answer)
    .flatMap(([workload, { logs = [] }]) => logs.map((line) => ({ ...line, workload })))
    .sort((a, b) => (a.timestamp < b.timestamp ? -1 : 1));

function Lines({ lines, isFollowing, isNamed }: { lines: readonly LogLine[]; isFollowing: boolean; isNamed: boolean }) {
  const frame = useRef<HTMLDivElement>(null);
  const last = lines.at(-1)?.timestamp;
  useEffect(() => {
    if (isFollowing) frame.current?.scrollTo(0, frame.current.scrollHeight);
  }, [last, isFollowing]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
    <div class="log" ref={frame} role="log" aria-label="Log lines" tabIndex={0}>
      {lines.map(({ timestamp, message, severity, workload }, at) => (
        <div key={`${timestamp} ${at}`} class={severity >= ERROR_FROM ? "bad" : severity >= WARNING_FROM ? "busy" : ""}>
          <time dateTime={timestamp}>{new Date(timestamp).toLocaleTimeString()}</time>
          {isNamed ? <span class="who">{workload}</span> : null}
          <span>{message}</span>
        </div>
      ))}
    </div>
  );
}

function save(lines: readonly LogLine[]): void {
  const text = lines.map(({ timestamp, workload, message }) => `${timestamp} ${workload} ${message}\n`).join("");
  const url = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "logs.txt";
  link.click();
  URL.revokeObjectURL(url);
}
