import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import type { Part } from "./harness.ts";

export const images: Part = (get) => {
  test("an image that workloads start from is listed and found, an unknown one is not", async () => {
    const { driver, image } = get();
    const images = await need(driver, "images");
    const found = await images.find(image);
    assert.ok((await images.list()).some(({ name }) => name === found?.name));
    assert.equal(await images.find("nobody/knows:this"), null);
    assert.equal(await images.bytes("nobody/knows:this"), null);
  });
};
