/** Every page for people, in a real browser: what they see, type and click. One platform and one browser for all. */
import { after, before, describe } from "node:test";
import { openChromium } from "./chromium.ts";
import { externalSuite } from "./external-suite.ts";
import { invitationSuite } from "./invitation-suite.ts";
import { linkAttackSuite } from "./link-attack-suite.ts";
import { passwordSuite } from "./password-suite.ts";
import { openScene, type Scene } from "./scene.ts";
import { signInSuite } from "./sign-in-suite.ts";
import { signOutSuite } from "./sign-out-suite.ts";

const chromium = await openChromium();

describe("pages for people", { skip: chromium.skip }, () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene(chromium);
  });
  after(async () => {
    await chromium.close();
    await scene[Symbol.asyncDispose]();
  });

  signInSuite(() => scene);
  externalSuite(() => scene);
  invitationSuite(() => scene);
  linkAttackSuite(() => scene);
  passwordSuite(() => scene);
  signOutSuite(() => scene);
});
