import assert from "node:assert/strict";
import { test } from "node:test";
import { type Place, type PlacementPolicy, placementRefusal } from "./placement.ts";

const HERE: Place = {
  regions: ["home-1", "us-pdx-1"],
  country: "de",
  continent: "eu",
  flavors: [{ type: "cpu", name: "arm" }],
};
const UNTOLD: Place = { regions: ["local"], flavors: [{ type: "cpu", name: "x86" }] };

const location = (type: string, name: string): PlacementPolicy => ({
  name: `${type}-${name}`,
  type: "location",
  locations: [{ type, name }],
});
const flavor = (type: string | undefined, name: string | undefined): PlacementPolicy => ({
  name: `flavor-${name}`,
  type: "flavor",
  flavors: [{ type, name }],
});
const tokens: PlacementPolicy = { name: "cap", type: "maxToken" };
const onlyJobs: PlacementPolicy = { ...location("country", "us"), resourceTypes: ["job"] };

const CASES: readonly [title: string, policies: PlacementPolicy[], place: Place, refusal: RegExp | null][] = [
  ["no policy", [], HERE, null],
  ["a policy of another type", [tokens], HERE, null],
  ["the own region", [location("location", "home-1")], HERE, null],
  ["an alias of it", [location("location", "us-pdx-1")], HERE, null],
  [
    "another region",
    [location("location", "mars")],
    HERE,
    /policy 'location-mars' allows location mars.*home-1, de, eu/,
  ],
  ["the own country in capitals", [location("country", "DE")], HERE, null],
  ["another continent", [location("continent", "na")], HERE, /allows continent na/],
  ["one of two location policies", [location("continent", "na"), location("country", "de")], HERE, null],
  ["a country nobody told", [location("country", "us")], UNTOLD, /has not told its country \(BERTH_COUNTRY\)/],
  ["an empty name where nobody told", [location("country", "")], UNTOLD, /BERTH_COUNTRY/],
  ["the own processor", [flavor("cpu", "arm")], HERE, null],
  ["the own processor by another name", [flavor("cpu", "aarch64")], HERE, null],
  ["any processor", [flavor("cpu", undefined)], HERE, null],
  ["another processor", [flavor("cpu", "x86")], HERE, /allows cpu x86, and this server has cpu arm/],
  ["a graphics card", [flavor("gpu", "t4")], HERE, /allows gpu t4/],
  ["one of two flavor policies", [flavor("gpu", "t4"), flavor(undefined, "arm")], HERE, null],
  ["place allowed, processor not", [location("country", "de"), flavor("cpu", "x86")], HERE, /flavor-x86/],
  ["a policy for other kinds", [onlyJobs], HERE, null],
];

for (const [title, policies, place, refusal] of CASES)
  test(`${title} ${refusal ? "is refused" : "is allowed"}`, () => {
    const found = placementRefusal(policies, "sandbox", place);
    if (refusal) assert.match(found ?? "", refusal);
    else assert.equal(found, null);
  });
