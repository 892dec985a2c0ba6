/** Help of a schema in the editor: members and values while one types, what a member means, members that do not exist. */
import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { type Diagnostic, linter } from "@codemirror/lint";
import { hoverTooltip } from "@codemirror/view";
import type { EditorView } from "codemirror";
import { aboutOf, membersOf, parentsAt, readMembers, schemaAt, unknownMembers, valuesOf } from "../lib/schema-help.ts";

type Text = EditorView["state"]["doc"];

const linesOf = (doc: Text): string[] => doc.toString().split("\n");

/** Members at the beginning of a line, values behind a colon. */
export const completions =
  (schema: unknown) =>
  ({ state: { doc }, pos, explicit }: CompletionContext): CompletionResult | null => {
    const line = doc.lineAt(pos);
    const before = line.text.slice(0, pos - line.from);
    const lines = linesOf(doc);
    const [, , name = "", typed = ""] = /^(\s*(?:- +)*)([\w-]+):\s+(\w*)$/.exec(before) ?? [];
    if (name !== "") {
      const column = before.indexOf(name);
      const values = valuesOf(schemaAt(schema, [...parentsAt(lines, line.number - 1, column), name]));
      return values.length === 0 ? null : { from: pos - typed.length, options: values.map((label) => ({ label })) };
    }
    const [, indent = "", word = ""] = /^(\s*(?:- +)*)([\w-]*)$/.exec(before) ?? [];
    if (indent.length + word.length !== before.length || (word === "" && !explicit)) return null;
    const members = membersOf(schemaAt(schema, parentsAt(lines, line.number - 1, indent.length)));
    return {
      from: pos - word.length,
      options: members.map(({ name: label, type, about }) => ({
        ...{ label, detail: type, apply: `${label}: ` },
        ...(about === "" ? {} : { info: about }),
      })),
    };
  };

/** What the member below the pointer means. */
export const hover = (schema: unknown) =>
  hoverTooltip(({ state: { doc } }, pos) => {
    const line = doc.lineAt(pos);
    const found = readMembers(linesOf(doc)).find((member) => member.line === line.number - 1);
    if (!found || pos < line.from + found.column || pos > line.from + found.column + found.name.length) return null;
    const { type, about } = aboutOf(schemaAt(schema, [...found.parents, found.name]));
    if (type === "" && about === "") return null;
    return {
      pos: line.from + found.column,
      create: () => {
        const dom = document.createElement("div");
        dom.className = "yaml-hover";
        dom.textContent = [type, about].filter(Boolean).join(": ");
        return { dom };
      },
    };
  });

export const marks = (schema: unknown) =>
  linter(({ state: { doc } }) =>
    unknownMembers(linesOf(doc), schema).map(({ name, line, column }): Diagnostic => {
      const from = doc.line(line + 1).from + column;
      return { from, to: from + name.length, severity: "warning", message: `There is no member '${name}' here.` };
    }),
  );
