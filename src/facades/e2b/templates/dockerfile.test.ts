import assert from "node:assert/strict";
import { test } from "node:test";
import { planOf } from "./dockerfile.ts";

const run = (command: string, user?: string) => ({ type: "RUN", args: user ? [command, user] : [command] });

test("a template becomes a Dockerfile whose words are the template's own", () => {
  const { dockerfile, files } = planOf({
    fromTemplate: "base",
    steps: [
      { type: "ENV", args: ["A", 'a "b" $c \\d', "B", "2"] },
      { type: "WORKDIR", args: ["/opt/my app"] },
      { type: "COPY", args: ["./src", "/srv", "", ""], filesHash: "h1" },
      { type: "COPY", args: ["*.txt", ".", "app:app", "0644"], filesHash: "h2" },
      run('echo "$A"\nls', "root"),
      { type: "USER", args: ["app"] },
      run("id"),
      run("apt-get update", "root"),
    ],
  });
  assert.deepEqual(files, ["h1", "h2"]);
  assert.deepEqual(dockerfile.trimEnd().split("\n"), [
    ...["FROM scratch AS files-0", "ADD files-0 /", "FROM scratch AS files-1", "ADD files-1 /"],
    "FROM service/base-image:latest",
    'ENV A="a \\"b\\" \\$c \\\\d"',
    'ENV B="2"',
    'WORKDIR "/opt/my app"',
    'COPY --from=files-0 ["/src","/srv"]',
    'COPY --from=files-1 --chown=app:app --chmod=0644 ["/*.txt","."]',
    'RUN ["/bin/sh","-c","echo \\"$A\\"\\nls"]',
    "USER app",
    'RUN ["/bin/sh","-c","id"]',
    ...["USER root", 'RUN ["/bin/sh","-c","apt-get update"]', "USER app"],
  ]);
});

test("the base of a template is an image of E2B's clients, of a registry or of the workspace", () => {
  const baseOf = (template: object) => planOf(template).dockerfile.split("\n")[0];
  assert.equal(baseOf({ fromImage: "e2bdev/base" }), "FROM service/base-image:latest");
  assert.equal(baseOf({ fromImage: "python:3.12" }), "FROM python:3.12");
  assert.equal(baseOf({ fromTemplate: "tool:1.2" }), "FROM tool:1.2");
  assert.equal(baseOf({ fromTemplate: "code-interpreter-v1" }), "FROM service/code-interpreter:latest");
});

test("what no Dockerfile can say is refused by name, and no word becomes an instruction", () => {
  assert.throws(() => planOf({ startCmd: "serve" }), /setStartCmd/);
  assert.throws(() => planOf({ readyCmd: "true" }), /setReadyCmd/);
  assert.throws(() => planOf({ steps: [{ type: "ONBUILD", args: [] }] }), /"ONBUILD"/);
  for (const steps of [
    [{ type: "USER", args: ["root\nRUN id"] }],
    [{ type: "WORKDIR", args: ["/a\nRUN id"] }],
    [{ type: "ENV", args: ["A B", "1"] }],
    [run("id", "a b")],
  ])
    assert.throws(() => planOf({ steps }), /is not supported/);
  assert.throws(() => planOf({ fromImage: "a\nRUN id" }), /is not supported/);
});
