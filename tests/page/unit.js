// unit.js - runs the unit tests of the page in Node: node unit.js FOLDER-OF-THE-PAGE SCRIPT... The
// scripts are joined as in the page but for main.js, then the files unit_*.js, which call
// test(name, function) and same(actual, expected).
"use strict";

const fs = require("fs");
const path = require("path");

const [pageDir, ...scripts] = process.argv.slice(2);
const units = fs.readdirSync(__dirname).filter((f) => /^unit_\w+\.js$/.test(f)).sort();
const parts = [
  ...scripts.filter((f) => f !== "main.js").map((f) => path.join(pageDir, f)),
  ...units.map((f) => path.join(__dirname, f))
];
const source = "\"use strict\";\n" + parts.map((f) => fs.readFileSync(f, "utf8")).join("\n");

let failed = 0;
let passed = 0;

function same(actual, expected) {
  const a = JSON.stringify(actual), b = JSON.stringify(expected);
  if (a !== b) throw new Error("\n    got      " + a + "\n    expected " + b);
}

function test(name, work) {
  try {
    work();
    passed++;
  } catch (e) {
    failed++;
    console.log("failed: " + name + ": " + (e.message.startsWith("\n") ? e.message : e.stack));
  }
}

new Function("test", "same", "document", source)(test, same, undefined);
console.log(passed + " passed, " + failed + " failed");
process.exit(failed || passed === 0 ? 1 : 0);
