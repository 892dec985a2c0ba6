/** Lines of logs, each on one line of the screen; only those near the view are in the document. */
import { useState } from "preact/hooks";
import { clockOf } from "../../lib/format.ts";
import { setQuery } from "../../lib/location.ts";
import { keyOfLine, type LogLine } from "../../lib/log-lines.ts";
import { useScrollWindow } from "../../table/scroll-window.ts";
import { Code } from "../../ui/code.tsx";

/** From this number on a line is an error (OpenTelemetry). */
const ERROR_FROM = 17;
const WARNING_FROM = 13;
const LINE_PX = 20;

interface LineListProps {
  lines: readonly LogLine[];
  /** New lines come, and the last one stays in view. */
  isFollowing: boolean;
  /** Each line says whose it is. */
  isNamed: boolean;
  /** Older lines are wanted. */
  onStart(): void;
}

export function LineList({ lines, isFollowing, isNamed, onStart }: LineListProps) {
  const [isAtEnd, setAtEnd] = useState(true);
  const [chosen, setChosen] = useState<LogLine | null>(null);
  const { frame, shown, onScroll } = useScrollWindow({
    ...{ rows: lines, keyOf: keyOfLine, rowPx: LINE_PX, onStart },
    isFollowing: isFollowing && isAtEnd,
  });
  return (
    <>
      <div
        class="log"
        ref={frame}
        role="log"
        aria-label="Log lines"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
        tabIndex={0}
        onScroll={() => {
          onScroll();
          const { scrollTop, scrollHeight, clientHeight } = frame.current ?? END;
          setAtEnd(scrollHeight - scrollTop - clientHeight < 2 * LINE_PX);
        }}
      >
        <div style={{ height: `${shown.abovePx}px` }} />
        {lines.slice(shown.first, shown.end).map((line) => (
          <Line key={keyOfLine(line)} line={line} isNamed={isNamed} onChoose={setChosen} />
        ))}
        <div style={{ height: `${shown.belowPx}px` }} />
      </div>
      {chosen === null ? null : (
        <section aria-label="The whole line">
          <Code text={`${chosen.timestamp}\n${chosen.message}`} noun="The line" />
        </section>
      )}
    </>
  );
}

const END = { scrollTop: 0, scrollHeight: 0, clientHeight: 0 };

interface LineProps {
  line: LogLine;
  isNamed: boolean;
  onChoose(line: LogLine): void;
}

function Line({ line, isNamed, onChoose }: LineProps) {
  const { timestamp, message, severity, workload, trace_id } = line;
  return (
    <div class={`line ${severity >= ERROR_FROM ? "bad" : severity >= WARNING_FROM ? "busy" : ""}`}>
      <button type="button" class="when" title="Show the whole line" onClick={() => onChoose(line)}>
        <time dateTime={timestamp}>{clockOf(timestamp)}</time>
      </button>
      {isNamed ? <span class="who">{workload}</span> : null}
      <span>{message.length > SHOWN_MAX ? `${message.slice(0, SHOWN_MAX)}…` : message}</span>
      {trace_id === "" ? null : (
        <button type="button" class="trace" title="Only this trace" onClick={() => setQuery({ trace: trace_id })}>
          {trace_id.slice(0, 8)}
        </button>
      )}
    </div>
  );
}

/** A longer message is shown whole when its line is chosen. */
const SHOWN_MAX = 2000;
