import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { defineKind } from "../contract/kind.ts";
import { defineOperation, type Operation } from "../contract/operation.ts";
import { KINDS, OPERATIONS } from "../kinds/index.ts";
import { UsageError } from "../lib/usage-error.ts";
import { findNoun, nounsOf, operationOf, paramsFrom } from "./nouns.ts";

const shelf = defineKind({
  name: "bookShelf",
  plural: "bookShelves",
  summary: "Holds books",
  param: "shelfName",
  verbs: ["list", "get"],
  spec: z.object({}),
  revisions: true,
});
const op = (id: string, path: string, extra: Partial<Operation> = {}): Operation =>
  defineOperation({
    id,
    method: "GET",
    path,
    summary: id,
    tenancy: "caller",
    scope: null,
    role: "member",
    response: z.unknown(),
    ...extra,
  });

const nouns = nounsOf(
  [shelf],
  [
    ...shelf.operations,
    op("bookShelfPaint", "/bookShelves/{shelfName}/paint"),
    op("apiKeyList", "/api_keys", { kind: "apikey", verb: "list" }),
    op("apiKeyRevoke", "/api_keys/{id}", { kind: "apikey", verb: "delete" }),
    op("lampSwitch", "/lamp/switch"),
    op("bookGet", "/bookShelves/{shelfName}/books/{bookName}"),
  ],
);

describe("nouns", () => {
  test("come with their verbs, whatever way an operation is declared", () => {
    assert.deepEqual(
      nouns.map(({ name, plural, verbs }) => [name, plural, ...verbs.keys()]),
      [
        ["book-shelf", "book-shelves", "list", "get", "paint"],
        ["book-shelf-revision", "book-shelf-revisions", "list"],
        ["api-key", "api-keys", "list", "delete"],
        ["book", "books", "get"],
        ["lamp", "lamps", "switch"],
      ],
    );
  });

  for (const word of ["bookShelf", "BookShelves", "book-shelf", "book_shelves", "BOOKSHELF"]) {
    test(`${word} is understood`, () => assert.equal(findNoun(nouns, word).name, "book-shelf"));
  }

  test("an unknown one is refused with what was probably meant", () => {
    assert.throws(() => findNoun(nouns, "bokshelf"), /Did you mean book-shelf\?/);
    assert.throws(() => operationOf(findNoun(nouns, "book"), "delete"), /a book cannot be deleted/);
  });

  test("every operation of the platform is reached by exactly one verb", () => {
    const reached = nounsOf(KINDS, OPERATIONS).flatMap(({ verbs }) => [...verbs.values()].map(({ id }) => id));
    assert.deepEqual(reached.toSorted(), OPERATIONS.map(({ id }) => id).toSorted());
  });
});

describe("paths", () => {
  const nested = findNoun(nouns, "book").verbs.get("get") as Operation;
  test("name what contains and what is contained", () => {
    assert.deepEqual(paramsFrom(nested, "s/b"), { shelfName: "s", bookName: "b" });
    assert.deepEqual(paramsFrom(nested, "s/b/c"), { shelfName: "s", bookName: "b/c" });
  });
  test("may leave out the type of an image", () => {
    const image = findNoun(nounsOf(KINDS, OPERATIONS), "image");
    const remove = operationOf(image, "delete");
    assert.deepEqual(paramsFrom(remove, "tool"), { resourceType: "_", imageName: "tool" });
    assert.deepEqual(paramsFrom(remove, "agent/tool"), { resourceType: "agent", imageName: "tool" });
    assert.throws(() => paramsFrom(remove, ""), UsageError);
  });
  for (const path of ["", "s", "s/", "/b"]) {
    test(`'${path}' is not enough`, () => {
      assert.throws(
        () => paramsFrom(nested, path),
        (error) => error instanceof UsageError && error.next === "write shelfName/bookName",
      );
    });
  }
});
