/** The tools of an MCP server: what each takes, a form or JSON to call it with, and its result. */
import "./tools.css";
import { useEffect, useMemo, useState } from "preact/hooks";
import { createMcpClient, type McpClient, type Tool, type ToolResult } from "../../api/mcp.ts";
import { useAction, useAnswer } from "../../api/query.ts";
import type { Workload } from "../../api/workload.ts";
import { FormInput } from "../../form/form-field.tsx";
import { fieldsOf, withMember } from "../../form/schema.ts";
import { spanText } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { isObject, type Json, memberAt } from "../../lib/members.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Field } from "../../ui/field.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { Withheld } from "./withheld.tsx";

export const ToolsTab = ({ workload }: { workload: Workload }) => (
  <div class="stack">
    <Withheld key={`${workload.workspace}/${workload.name}`} workload={workload} />
    <Tools workload={workload} />
  </div>
);

function Tools({ workload }: { workload: Workload }) {
  const { workspace, plural, name } = workload;
  const client = useMemo(() => createMcpClient(workload), [workspace, plural, name]);
  useEffect(() => () => client.close(), [client]);
  const {
    data: tools,
    error,
    refetch,
  } = useAnswer({
    key: ["tools", workspace, plural, name],
    ask: (signal) => client.tools(signal),
  });
  const chosen = tools?.find((tool) => tool.name === queryOf("tool")) ?? tools?.[0];
  if (error)
    return (
      <Failure error={error}>
        <Button onClick={() => void refetch()}>Try again</Button>
      </Failure>
    );
  if (tools === undefined) return <Loading />;
  if (chosen === undefined) return <Blank title="No tools" text="The server answers, and lists no tools." />;
  return (
    <div class="tools">
      <ul class="tool-list" aria-label="Tools">
        {tools.map((tool) => (
          <li key={tool.name}>
            <button type="button" aria-current={tool === chosen} onClick={() => setQuery({ tool: tool.name })}>
              <span class="mono">{tool.name}</span>
              <span class="quiet">{tool.title || tool.description}</span>
            </button>
          </li>
        ))}
      </ul>
      <ToolForm key={chosen.name} tool={chosen} client={client} />
    </div>
  );
}

/** A tool with more members is called with JSON. */
const FIELDS_MAX = 60;

/** Fields for the members of a tool; none where a name of a member would be read as a path. */
function fieldsFor({ inputSchema }: Tool) {
  const properties = memberAt(inputSchema, "properties");
  if (!isObject(properties) || JSON.stringify(properties).length > FIELDS_MAX * 1024) return [];
  if (Object.keys(properties).some((name) => name.includes("."))) return [];
  const fields = fieldsOf(inputSchema);
  return fields.length > FIELDS_MAX ? [] : fields;
}

interface Reply extends ToolResult {
  ms: number;
}

function ToolForm({ tool, client }: { tool: Tool; client: McpClient }) {
  const fields = useMemo(() => fieldsFor(tool), [tool]);
  const [given, setGiven] = useState<Json>({});
  /** What a person typed as JSON; null while the form says it. */
  const [text, setText] = useState<string | null>(null);
  const [reply, setReply] = useState<Reply | null>(null);
  const { run, busy, error } = useAction(async () => {
    setReply(null);
    const sent: unknown = text === null ? given : JSON.parse(text);
    if (!isObject(sent)) throw new Error("The arguments must be a JSON object.");
    const begun = performance.now();
    const result = await client.call(tool.name, sent);
    setReply({ ...result, ms: performance.now() - begun });
  });
  return (
    <form
      class="stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) void run(null);
      }}
    >
      <h2 class="mono">{tool.name}</h2>
      {tool.description === "" ? null : <p class="tool-text">{tool.description}</p>}
      {fields.map((field) => (
        <FormInput
          key={field.path}
          field={field}
          value={memberAt(given, field.path)}
          wrong={null}
          onInput={(value) => {
            setGiven(withMember(given, field.path, value));
            setText(null);
          }}
        />
      ))}
      <Field
        label="Arguments as JSON"
        lines={4}
        value={text ?? JSON.stringify(given, null, 2)}
        onInput={setText}
        hint={text === null || fields.length === 0 ? undefined : "This is sent. A change of the form replaces it."}
      />
      <div class="row">
        <Button kind="main" type="submit" busy={busy}>
          Call
        </Button>
      </div>
      {error ? <Failure error={error} /> : null}
      {reply === null ? null : (
        <section class="stack" aria-label="Result">
          <p>
            <strong>{reply.isError ? "The tool failed" : "Result"}</strong>{" "}
            <span class="quiet">after {spanText(reply.ms)}</span>
          </p>
          {reply.parts.map((part, at) => (
            <Code key={at} text={part} noun="The result" />
          ))}
        </section>
      )}
      <details>
        <summary>Schema of the arguments</summary>
        <Code text={JSON.stringify(tool.inputSchema ?? {}, null, 2)} noun="The schema" />
      </details>
    </form>
  );
}
