/** What workloads wrote: counts over time, the newest lines at the end, followed while they come. */
import "./logs.css";
import { useMemo, useState } from "preact/hooks";
import { downloadText, LOGS_PATH, type LogQuery, logParameters, useHistogram, useLines } from "../../api/logs.ts";
import { useAction } from "../../api/query.ts";
import type { Workload } from "../../api/workload.ts";
import { countOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { wantedBy } from "../../lib/log-lines.ts";
import { saveText } from "../../lib/save-text.ts";
import { titleOf } from "../../lib/titles.ts";
import { Button } from "../../ui/button.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { readRequest } from "../../views/lines.ts";
import { CopyAs } from "../copy-as.tsx";
import { Filters } from "./filters.tsx";
import { HistogramBars } from "./histogram.tsx";
import { LineList } from "./line-list.tsx";

const KINDS = ["sandboxes", "agents", "functions", "jobs", "applications"];
const MINUTE_MS = 60_000;

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
  const isRegex = queryOf("regex") === "1";
  const text = queryOf("text");
  const minutes = Number(queryOf("span") || "60");
  // The begin moves with the minutes, not with every reading: a new begin is another question.
  const [openedMs] = useState(() => Date.now());
  const query: LogQuery = {
    ...{
      workspace,
      plural,
      name,
      search: isRegex ? "" : text,
      severity: queryOf("severity"),
      traceId: queryOf("trace"),
    },
    start: queryOf("from") || new Date(openedMs - minutes * MINUTE_MS).toISOString(),
    end: queryOf("to"),
  };
  const [isPaused, setPaused] = useState(false);
  const { lines, before, isLoading, error, older } = useLines(query, isPaused);
  const { data: histogram } = useHistogram(query, isPaused);
  const { isWanted, wrong } = wantedBy(isRegex ? text : "");
  const shown = useMemo(() => (isRegex ? lines.filter(isWanted) : lines), [lines, isRegex, text]);
  const save = useAction(async () => saveText("logs.txt", await downloadText(query, isWanted)));
  return (
    <div class="stack">
      <Filters wrong={wrong}>
        <Button unable={query.end === "" ? null : "The range has an end"} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Follow" : "Pause"}
        </Button>
        <Button
          busy={save.busy}
          unable={shown.length ? null : "There are no lines"}
          onClick={() => void save.run(null)}
        >
          Download
        </Button>
        <CopyAs asked={readRequest(workspace, "logQuery", LOGS_PATH, commandOf(query), logParameters(query))} />
      </Filters>
      {histogram && histogram.total > 0 ? (
        <HistogramBars histogram={histogram} onChoose={(from, to) => setQuery({ from, to })} />
      ) : null}
      {error ? <Failure error={error} /> : null}
      {save.error ? <Failure error={save.error} /> : null}
      {isLoading ? <Loading /> : null}
      {!isLoading && !error && shown.length === 0 ? (
        <Blank
          title={lines.length > 0 ? "No line matches" : "No lines in this time"}
          line={`berth logs ${singular(plural)}/NAME --since 1d`}
        />
      ) : null}
      {shown.length > 0 ? (
        <>
          <div class="row">
            <span class="quiet grow">{countOf(shown.length, "line")} shown</span>
            {before === null ? <span class="quiet">This is the first line of the time.</span> : null}
          </div>
          <LineList lines={shown} isFollowing={!isPaused && query.end === ""} isNamed={name === ""} onStart={older} />
        </>
      ) : null}
    </div>
  );
}

const singular = (plural: string): string => plural.replace(/e?s$/, "");

/** The command line reads the logs of one workload, and has no other filters. */
const commandOf = ({ plural, name, search, severity, traceId, end }: LogQuery): string | null =>
  name === "" || [search, severity, traceId, end].some((value) => value !== "")
    ? null
    : `logs ${singular(plural)}/${name}`;
