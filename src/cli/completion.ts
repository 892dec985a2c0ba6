/**
 * Completion scripts for shells, generated from the commands' declarations. Words are in the script, so that completing
 * is immediate; only names of resources are requested from the server.
 */
import { type CommandSpec, type OptionSpec, wordsOf } from "./command.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** The completions by position. */
export interface CompletionTable {
  /**
   * `path:index` of an argument -> words; `@kind` and `@0` stand for names of resources of the first argument's kind.
   */
  words: Map<string, readonly string[]>;
  /** path -> its options. */
  options: Map<string, readonly string[]>;
  /** Words of an option -> its choices. */
  choices: Map<string, readonly string[]>;
  /** Options that are followed by a value. */
  valued: readonly string[];
  /** Commands that have subcommands. */
  parents: readonly string[];
}

export function completionTable(commands: readonly CommandSpec[]): CompletionTable {
  const nouns = commands.filter(({ commands: verbs }) => verbs);
  const table: CompletionTable = {
    words: new Map([[":0", commands.map(({ name }) => name)]]),
    options: new Map(),
    choices: new Map(),
    valued: [],
    parents: nouns.map(({ name }) => name),
  };
  const valued = new Set<string>();
  for (const command of commands) {
    addCommand(table, valued, command.name, command, nouns);
    for (const verb of command.commands ?? []) addCommand(table, valued, `${command.name} ${verb.name}`, verb, nouns);
  }
  return { ...table, valued: [...valued] };
}

function addCommand(
  table: CompletionTable,
  valued: Set<string>,
  path: string,
  command: CommandSpec,
  nouns: readonly CommandSpec[],
): void {
  if (command.commands)
    table.words.set(
      `${path}:0`,
      command.commands.map(({ name }) => name),
    );
  for (const [index, { offers }] of (command.args ?? []).entries()) {
    const [noun = "", verb] = path.split(" ");
    const words =
      offers === "kind"
        ? nouns.map(({ name }) => name)
        : offers === "name"
          ? [verb ? `@${noun}` : "@0"]
          : (offers ?? []);
    if (words.length > 0) table.words.set(`${path}:${index}`, words);
  }
  const options = [...(command.options ?? []), HELP];
  table.options.set(
    path,
    options.map((option) => wordsOf(option).long),
  );
  for (const option of options) {
    const { short, long, takesValue } = wordsOf(option);
    const spellings = short ? [short, long] : [long];
    if (takesValue) for (const word of spellings) valued.add(word);
    if (option.choices) table.choices.set(spellings.join("|"), option.choices);
  }
}

const HELP: OptionSpec = { flags: "-h, --help", about: "show help" };

export function completionScript(shell: Shell, commands: readonly CommandSpec[]): string {
  const table = completionTable(commands);
  return shell === "fish" ? fishScript(table) : posixScript(table) + FRONT_ENDS[shell];
}

const FRONT_ENDS = {
  bash: `
_berth() {
  local cur="\${COMP_WORDS[COMP_CWORD]}"
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(__berth_candidates "$cur" "\${COMP_WORDS[@]:1:COMP_CWORD-1}")" -- "$cur"))
}
complete -o default -F _berth berth`,
  zsh: `
_berth() {
  local found="$(__berth_candidates "\${words[CURRENT]}" "\${(@)words[2,CURRENT-1]}")"
  if [ -n "$found" ]; then compadd -- \${(f)found}; else _files; fi
}
if [ "\${funcstack[1]}" = "_berth" ]; then _berth "$@"; else compdef _berth berth; fi`,
} satisfies Record<Exclude<Shell, "fish">, string>;

const print = (words: readonly string[]): string => `printf '%s\\n' ${words.join(" ")}`;
const quoted = (key: string): string => `"${key}"`;

/** The part that bash and zsh share. */
function posixScript({ words, options, choices, valued, parents }: CompletionTable): string {
  return `#compdef berth
# Made by \`berth completion\`; make it again after an upgrade.
__berth_candidates() {
  # $1 is the word being typed, the others stand before it.
  local cur="$1" prev="" skip="" command="" place=0 first="" word
  shift
  for word in "$@"; do
    prev="$word"
    if [ -n "$skip" ]; then skip=""; continue; fi
    case "$word" in
      ${valued.join("|")}) skip=1; continue ;;
      -*) continue ;;
    esac
    case "$command" in
      "") command="$word"; continue ;;
      ${parents.join("|")}) command="$command $word"; continue ;;
    esac
    if [ "$place" = 0 ]; then first="$word"; fi
    place=$((place + 1))
  done
  if [ -n "$skip" ]; then
    case "$prev" in
${[...choices].map(([spelling, list]) => `      ${spelling}) ${print(list)} ;;`).join("\n")}
    esac
    return
  fi
  case "$cur" in
    -*)
      case "$command" in
${[...options].map(([path, list]) => `        ${quoted(path)}) ${print(list)} ;;`).join("\n")}
      esac
      return ;;
  esac
  case "$command:$place" in
${[...words].map(([place, list]) => `    ${quoted(place)}) ${printOrAsk(list, '"$first"')} ;;`).join("\n")}
  esac
}
`;
}

/** Names come from the server; when it does not answer, nothing is offered. */
function printOrAsk(list: readonly string[], first: string): string {
  const [word = ""] = list;
  if (!word.startsWith("@")) return print(list);
  return `berth list ${word === "@0" ? first : word.slice(1)} -o name 2>/dev/null`;
}

function fishScript({ words, options, choices, valued, parents }: CompletionTable): string {
  const cases = (entries: Iterable<[string, readonly string[]]>, keys: (key: string) => string): string =>
    [...entries].map(([key, list]) => `      case ${keys(key)}\n        ${printOrAsk(list, "$first")}`).join("\n");
  return `# Made by \`berth completion\`; make it again after an upgrade.
function __berth_candidates
  set -l before (commandline -opc)[2..-1]
  set -l cur (commandline -ct)
  set -l prev ""
  set -l skip ""
  set -l command ""
  set -l place 0
  set -l first ""
  for word in $before
    set prev $word
    if test -n "$skip"
      set skip ""
      continue
    end
    switch $word
      case ${valued.join(" ")}
        set skip 1
        continue
      case '-*'
        continue
    end
    switch $command
      case ''
        set command $word
        continue
      case ${parents.join(" ")}
        set command "$command $word"
        continue
    end
    test $place = 0; and set first $word
    set place (math $place + 1)
  end
  if test -n "$skip"
    switch $prev
${cases(choices, (key) => key.replaceAll("|", " "))}
    end
    return
  end
  if string match -q -- '-*' $cur
    switch $command
${cases(options, quoted)}
    end
    return
  end
  switch "$command:$place"
${cases(words, quoted)}
  end
end
complete -c berth -f -a '(__berth_candidates)'`;
}
