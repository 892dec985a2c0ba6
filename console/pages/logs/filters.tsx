/** Which lines are shown. All of it is in the address. */
import type { ComponentChildren } from "preact";
import { clockOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { Button } from "../../ui/button.tsx";

const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "FATAL"];
const SPANS: readonly (readonly [minutes: string, title: string])[] = [
  ["15", "Last 15 minutes"],
  ["", "Last hour"],
  ["360", "Last 6 hours"],
  ["1440", "Last day"],
  ["4320", "Last 3 days"],
];

export function Filters({ wrong, children }: { wrong: string | null; children: ComponentChildren }) {
  const isRegex = queryOf("regex") === "1";
  const [from, to, trace] = [queryOf("from"), queryOf("to"), queryOf("trace")];
  return (
    <>
      <div class="filters">
        <input
          class="input"
          type="search"
          data-key="/"
          aria-label="Text in the line"
          aria-invalid={wrong !== null}
          placeholder={isRegex ? "Regular expression" : "Text in the line"}
          value={queryOf("text")}
          onInput={(event) => setQuery({ text: event.currentTarget.value })}
        />
        <button
          type="button"
          class="button icon mono"
          aria-pressed={isRegex}
          aria-label="Regular expression"
          title="Regular expression: filters the lines that are here"
          onClick={() => setQuery({ regex: isRegex ? "" : "1" })}
        >
          .*
        </button>
        <select
          class="input"
          aria-label="Severity"
          value={queryOf("severity")}
          onChange={(event) => setQuery({ severity: event.currentTarget.value })}
        >
          <option value="">Every severity</option>
          {LEVELS.map((level) => (
            <option key={level}>{level}</option>
          ))}
        </select>
        <select
          class="input"
          aria-label="Time"
          value={from === "" ? queryOf("span") : "chosen"}
          onChange={(event) => setQuery({ span: event.currentTarget.value, from: "", to: "" })}
        >
          {SPANS.map(([minutes, title]) => (
            <option key={minutes} value={minutes}>
              {title}
            </option>
          ))}
          {from === "" ? null : <option value="chosen">Chosen</option>}
        </select>
        {children}
      </div>
      {wrong === null ? null : <p class="wrong">{wrong}</p>}
      {from === "" && trace === "" ? null : (
        <div class="row">
          {from === "" ? null : (
            <Button onClick={() => setQuery({ from: "", to: "" })}>{`${clockOf(from)} to ${clockOf(to)} ×`}</Button>
          )}
          {trace === "" ? null : <Button onClick={() => setQuery({ trace: "" })}>{`Trace ${trace} ×`}</Button>}
        </div>
      )}
    </>
  );
}
