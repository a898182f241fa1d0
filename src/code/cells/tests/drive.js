// Runs rows of scripts as an interpreter of cells would, each row after the other in one
// process; answers with what the last cell of each row gave.
"use strict";
const vm = require("node:vm");
const util = require("node:util");
const rows = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
let echoed, parts;
globalThis.__cell_echo = (value) => { echoed = value; };
globalThis.__cell_part = (part) => { parts.push(part); };
globalThis.__cell_named = (module, ...names) => {
  for (const name of names) {
    if (!(name in module)) throw new SyntaxError(`the module has no export named ${name}`);
  }
  return module;
};
globalThis.require = require;
async function run({ code, shift }) {
  [echoed, parts] = [undefined, []];
  const script = new vm.Script(code, {
    filename: "cell.js",
    columnOffset: -shift,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  script.runInThisContext();
  for (const part of parts) await part();
  return util.inspect(await echoed);
}
(async () => {
  const answers = [];
  for (const scripts of rows) {
    const before = new Set(Object.getOwnPropertyNames(globalThis));
    let answer;
    for (const script of scripts) {
      try {
        answer = await run(script);
      } catch (error) {
        const place = /cell\.js:(\d+):(\d+)/.exec(error?.stack ?? "");
        answer = `${error?.name}: ${error?.message}` + (place ? ` @${place[1]}:${place[2]}` : "");
      }
    }
    answers.push(answer);
    // What a `var` made stays for ever; the next row must not see its value.
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      if (!before.has(name)) globalThis[name] = undefined;
    }
  }
  process.stdout.write(JSON.stringify(answers));
})();
