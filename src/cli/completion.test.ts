/** The scripts are run by the shells themselves, as far as the machine has them. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { operatorCommands } from "../operator/commands.ts";
import { completionScript, SHELLS, type Shell } from "./completion.ts";
import { allCommands } from "./program.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-completion-"));
after(() => rmSync(folder, { recursive: true }));

const commands = allCommands(operatorCommands);

/** `words` is the line typed so far; the last one is being completed. */
const ASK: Record<Shell, (script: string, words: string[]) => [file: string, args: string[], input: string]> = {
  bash: (script, words) => [
    "bash",
    ["--norc"],
    `berth() { echo "name-of-$2"; }\n${script}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})\nCOMP_CWORD=${words.length - 1}\n_berth\nprintf '%s\\n' "\${COMPREPLY[@]}"\n`,
  ],
  zsh: (script, words) => [
    "zsh",
    ["-f"],
    `compdef() { :; }\nberth() { echo "name-of-$2"; }\n${script}\n__berth_candidates '${words.at(-1)}' ${words
      .slice(1, -1)
      .map((word) => `'${word}'`)
      .join(" ")}\n`,
  ],
  fish: (script, words) => [
    "fish",
    ["--no-config"],
    `function berth; echo "name-of-$argv[2]"; end\n${script}\ncomplete -C '${words.join(" ")}'\n`,
  ],
};

/** A language that the machine does not have makes shells complain. */
const ENV = { ...process.env, LC_ALL: "C" };

const isHere = (shell: Shell): boolean => spawnSync(shell, ["-c", "true"]).status === 0;

for (const shell of SHELLS) {
  const skip = isHere(shell) ? false : `${shell} is not installed here; install it to run this`;
  describe(`completion for ${shell}`, { skip }, () => {
    const script = completionScript(shell, commands);
    const complete = (...words: string[]): string[] => {
      const [file, args, input] = ASK[shell](script, ["berth", ...words]);
      const path = join(folder, "ask");
      writeFileSync(path, input);
      const { stdout, stderr, status } = spawnSync(file, [...args, path], { encoding: "utf8", env: ENV });
      assert.equal(stderr, "");
      assert.equal(status, 0);
      // zsh is asked for all candidates; the others have filtered them already.
      return stdout
        .split("\n")
        .map((line) => line.split("\t")[0] ?? "")
        .filter((line) => line !== "" && line.startsWith(words.at(-1) ?? ""));
    };
    const CASES: [what: string, words: string[], some: string[], none: string[]][] = [
      ["a command", [""], ["get", "apply", "up", "completion", "drive"], ["--help"]],
      ["a command that has begun", ["lo"], ["login", "logout"], ["get"]],
      ["a kind", ["get", "dr"], ["drive"], ["get"]],
      ["a name", ["get", "drive", ""], ["name-of-drive"], []],
      ["a name below a noun", ["drive", "get", ""], ["name-of-drive"], []],
      ["a verb of a noun", ["drive", ""], ["list", "get", "create"], ["login"]],
      ["an option", ["list", "drives", "--so"], ["--sort"], ["--set"]],
      ["an option of a noun's verb", ["drive", "create", "--se"], ["--set"], ["--sort"]],
      ["a choice", ["list", "-o", ""], ["json", "yaml"], ["drive"]],
      ["a kind after an option with a value", ["-w", "dev", "list", "dri"], ["drive"], []],
      ["a shell", ["completion", ""], ["bash", "zsh", "fish"], []],
    ];
    for (const [what, words, some, none] of CASES) {
      test(`offers ${what}`, () => {
        const offered = complete(...words);
        for (const word of some) assert.ok(offered.includes(word), `${word} among ${offered.join(" ")}`);
        for (const word of none) assert.ok(!offered.includes(word), word);
      });
    }
  });
}
