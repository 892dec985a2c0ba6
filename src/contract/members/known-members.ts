/**
 * The members that a schema declares, for finding undeclared ones. Objects of the contract are loose, so that clients
 * may send more than is declared; zod then keeps the rest without a message.
 */
import type { z } from "zod";

/** The parts of a zod definition that lead to other schemas. */
interface Definition {
  type: string;
  shape?: Record<string, z.ZodType>;
  element?: z.ZodType;
  valueType?: z.ZodType;
  innerType?: z.ZodType;
  options?: readonly z.ZodType[];
  left?: z.ZodType;
  right?: z.ZodType;
  in?: z.ZodType;
  out?: z.ZodType;
  getter?: () => z.ZodType;
}

/** Schema types that do not declare members. */
const OPEN = new Set(["unknown", "any", "custom"]);

export class KnownMembers {
  readonly #schemas: readonly Definition[];
  readonly #members = new Map<string, KnownMembers>();
  #item: KnownMembers | undefined;

  /** A value may match any of the schemas. */
  constructor(schemas: readonly z.ZodType[]) {
    this.#schemas = schemas.flatMap(unwrapped);
  }

  /** Returns undefined when no schema has this member. */
  member(key: string): KnownMembers | undefined {
    const known = this.#members.get(key);
    if (known) return known;
    const schemas = this.#schemas.flatMap(({ shape, valueType }) =>
      valueType ? [valueType] : shape && Object.hasOwn(shape, key) ? [shape[key] as z.ZodType] : [],
    );
    if (schemas.length === 0) return undefined;
    const made = new KnownMembers(schemas);
    this.#members.set(key, made);
    return made;
  }

  get item(): KnownMembers {
    this.#item ??= new KnownMembers(this.#schemas.flatMap(({ element }) => element ?? []));
    return this.#item;
  }

  /** True when any member is allowed or none is declared: there is nothing to compare with. */
  get isOpen(): boolean {
    return this.#schemas.every(({ shape, valueType }) => !shape && !valueType) || this.#schemas.some(isOpen);
  }

  get names(): string[] {
    return [...new Set(this.#schemas.flatMap(({ shape }) => Object.keys(shape ?? {})))];
  }
}

const isOpen = ({ type }: Definition): boolean => OPEN.has(type);

/** The object, list or map schemas inside optional, refined and union schemas. */
function unwrapped(schema: z.ZodType): Definition[] {
  const def = schema.def as unknown as Definition;
  const inner = [def.innerType, def.left, def.right, def.in, def.out, def.getter?.(), ...(def.options ?? [])];
  const below = inner.flatMap((part) => (part ? unwrapped(part) : []));
  return below.length > 0 ? below : [def];
}
