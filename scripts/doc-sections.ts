/** Sections of the documentation that are made from the code: between `<!-- name -->` and `<!-- /name -->`. */
import { readFileSync } from "node:fs";
import { EXIT_MEANING } from "../src/cli/failure.ts";
import { SETTINGS } from "../src/config.ts";
import { defaultOf, flagOf } from "../src/operator/setting-flags.ts";

const SECTIONS: { file: string; name: string; rows(): string[][] }[] = [
  {
    file: "docs/operations.md",
    name: "settings",
    rows: () => [
      ["Setting", "Flag", "Variable", "Default", ""],
      ...Object.entries(SETTINGS).map(([name, { env, about }]) => [
        `\`${name}\``,
        `\`--${flagOf(name)}\``,
        `\`${env}\``,
        defaultOf(name) === null ? "" : `\`${defaultOf(name)}\``,
        about,
      ]),
    ],
  },
  {
    file: "docs/cli.md",
    name: "exit-codes",
    rows: () => [["Code", "Meaning"], ...Object.entries(EXIT_MEANING).map(([code, meaning]) => [code, meaning])],
  },
];

/** Files and their text with fresh sections. */
export const docSections = (): Record<string, string> =>
  Object.fromEntries(
    SECTIONS.map(({ file, name, rows }) => {
      const [open, close] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`];
      const [before = "", rest = ""] = readFileSync(file, "utf8").split(open);
      const after = rest.slice(rest.indexOf(close));
      return [file, `${before}${open}${table(rows())}${after}`];
    }),
  );

/** As the formatter writes tables. */
function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(3, ...rows.map((cells) => cells[index]?.length ?? 0)));
  const line = (cells: string[]): string =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(" | ")} |\n`;
  const [head = [], ...rest] = rows;
  return [head, widths.map((width) => "-".repeat(width)), ...rest].map(line).join("");
}
