const { expect } = require("chai");
const { size } = require("../src/sizes");

describe("size", function () {
  it("is big above the least", function () {
    expect(size(5)).to.equal("big");
  });
});
