/** All contexts of the interpreter: those that clients made, and the default context of each language. */
import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { ApiError } from "../http/api-error.ts";
import { Context } from "./context.ts";
import { DEFAULT_LANGUAGE, languageNamed } from "./languages.ts";

const CONTEXTS_MAX = 64;

export class Contexts {
  readonly folder: string;
  readonly #contexts = new Map<string, Context>();
  /** Called with each context that was removed. */
  onRemoved: (context: Context) => void = () => {};

  /** `folder`: where contexts start that name none, and what relative folders are relative to. */
  constructor(folder: string) {
    this.folder = folder;
  }

  list(): Context[] {
    return [...this.#contexts.values()];
  }

  create(language = DEFAULT_LANGUAGE, cwd = "."): Context {
    return this.#add(randomUUID(), language, cwd);
  }

  /** `default` is the default context of Python. */
  find(id: string): Context {
    const found = id === "default" ? this.defaultOf() : this.#contexts.get(id);
    if (!found) throw new ApiError(404, `There is no context ${JSON.stringify(id)}.`);
    return found;
  }

  /** The context of executions that name no other, made at its first use. Its id is the language. */
  defaultOf(language = DEFAULT_LANGUAGE): Context {
    const { name } = languageNamed(language);
    return this.#contexts.get(name) ?? this.#add(name, name, ".");
  }

  remove(id: string): void {
    const context = this.find(id);
    this.#contexts.delete(context.id);
    context.restart("The context was deleted.");
    this.onRemoved(context);
  }

  close(): void {
    for (const context of this.list()) context.restart("The interpreter ends.");
  }

  #add(id: string, language: string, cwd: string): Context {
    if (this.#contexts.size >= CONTEXTS_MAX)
      throw new ApiError(429, `There are ${CONTEXTS_MAX} contexts already; delete one first.`);
    const folder = resolve(this.folder, cwd);
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
      throw new ApiError(400, `There is no folder ${folder} for the context.`);
    const context = new Context(id, languageNamed(language), folder);
    this.#contexts.set(id, context);
    return context;
  }
}
