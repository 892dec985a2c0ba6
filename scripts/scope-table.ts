/** docs/scopes.md: which scope and role every operation needs, from the operations themselves. */
import type { Operation } from "../src/contract/operation.ts";

const INTRODUCTION = `# Scopes

What a token or key may be used for. Rights are scope **and** role: a scope never gives more than the role of its owner, and \`admin\` stands for every scope. A token or key that was asked for without scopes has all that its owner's role allows. See [identity](identity.md).

`;

const HEADINGS = ["Scope", "Operation", "Call", "Role"];

export function buildScopeTable(operations: readonly Operation[], scopes: ReadonlySet<string>): string {
  const rows = [...scopes].flatMap((scope) => {
    const needing = operations.filter((operation) => operation.scope === scope);
    if (needing.length === 0) return [[`\`${scope}\``, scope === "admin" ? "every one" : "", "", ""]];
    return needing.flatMap((operation) => [
      [`\`${scope}\``, operation.id, callOf(operation), roleOf(operation)],
      ...(operation.adminUses ?? []).map(({ query }) => ["", "", `\`… ?${query}\``, `${operation.tenancy} admin`]),
    ]);
  });
  const open = operations
    .filter(({ scope }) => scope === null)
    .map((operation) => ["", operation.id, callOf(operation), roleOf(operation)]);
  return INTRODUCTION + table([HEADINGS, ...rows, ...open]);
}

/** Columns are as wide as their widest cell, which is how the formatter would leave them. */
function table([headings = [], ...rows]: string[][]): string {
  const widths = headings.map((_, at) => Math.max(...[headings, ...rows].map((cells) => cells[at]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, at) => (cells[at] ?? "").padEnd(width)).join(" | ")} |\n`;
  return line(headings) + line(widths.map((width) => "-".repeat(width))) + rows.map(line).join("");
}

const callOf = ({ method, path }: Operation): string => `\`${method} /v0${path}\``;

function roleOf({ tenancy, role }: Operation): string {
  if (tenancy === "public") return "none: open to everybody";
  if (tenancy === "caller") return "anybody who is known";
  return `${tenancy} ${role}`;
}
