import assert from "node:assert/strict";
import { shout } from "../src/prints.js";

describe("prints", () => {
  it("shouts", () => assert.ok(shout("loud")));
});
