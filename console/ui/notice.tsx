import "./notice.css";
import type { ComponentChildren } from "preact";
import { Code } from "./code.tsx";

interface Refusal extends Error {
  code?: string;
  requestId?: string;
}

/** A failure as the server told it: what happened and what to do, its code, and the id to look it up with. */
export function Failure({ error, children }: { error: Refusal; children?: ComponentChildren }) {
  const { message, code = "", requestId = "" } = error;
  return (
    <div class="notice bad" role="alert">
      <p>{message}</p>
      <p class="quiet mono">
        {code}
        {requestId === "" ? "" : ` · request ${requestId}`}
      </p>
      {children}
    </div>
  );
}

/** A place with nothing in it yet, and the line that changes this. */
export function Blank({ title, text, line, children }: BlankProps) {
  return (
    <div class="blank">
      <h2>{title}</h2>
      {text === undefined ? null : <p class="quiet">{text}</p>}
      {children}
      {line === undefined ? null : <Code text={line} noun="The command" />}
    </div>
  );
}

interface BlankProps {
  title: string;
  text?: string;
  line?: string;
  children?: ComponentChildren;
}

export const Loading = () => (
  <div class="loading" role="progressbar" aria-label="Loading" aria-valuemin={0} aria-valuemax={1} />
);
