/** The kernels: one for each context, with the context's id. */
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Context } from "../context.ts";
import type { Contexts } from "../contexts.ts";
import { Kernel } from "./kernel.ts";

export class Kernels {
  readonly started = new Date();
  readonly #contexts: Contexts;
  readonly #kernels = new Map<Context, Kernel>();

  constructor(contexts: Contexts) {
    this.#contexts = contexts;
    contexts.onRemoved = (context) => {
      this.#kernels.get(context)?.close();
      this.#kernels.delete(context);
    };
  }

  list(): Kernel[] {
    return this.#contexts.list().map((context) => this.#of(context));
  }

  /** `path`: of a notebook or a folder, relative to the folder of the interpreter. It need not exist. */
  create(name: string | undefined, path = "."): Kernel {
    let folder = resolve(this.#contexts.folder, `./${path}`);
    while (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) folder = dirname(folder);
    return this.#of(this.#contexts.create(name, folder));
  }

  find(id: string): Kernel {
    return this.#of(this.#contexts.find(id));
  }

  remove(id: string): void {
    this.#contexts.remove(id);
  }

  #of(context: Context): Kernel {
    const kernel = this.#kernels.get(context) ?? new Kernel(context);
    this.#kernels.set(context, kernel);
    return kernel;
  }
}
