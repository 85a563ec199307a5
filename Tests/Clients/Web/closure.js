// Loads closure-library's sources uncompiled in Node, each file after the files that it requires. `CLOSURE_LIBRARY` names
// the checkout. The web SDK's published bundle contains the same WebChannel, compiled. `scripts` lists the loaded files, so
// that a browser can load the same files.

const fs = require('fs');
const path = require('path');
const vm = require('vm');

const root = path.join(process.env.CLOSURE_LIBRARY, 'closure', 'goog');
global.CLOSURE_NO_DEPS = true;
global.CLOSURE_UNCOMPILED_DEFINES = {'goog.ENABLE_DEBUG_LOADER': false, 'goog.DEBUG': false};
global.self = global;
const base = path.join(root, 'base.js');
const declaration = /^var goog = goog \|\| \{\};/m;
const scripts = [];
function run(text, file) {
  scripts.push(text);
  vm.runInThisContext(text, file);
}
run(fs.readFileSync(base, 'utf8').replace(declaration, 'this.goog = this.goog || {}; var goog = this.goog;'), base);

const sources = new Map();
function index(folder) {
  for (const entry of fs.readdirSync(folder, {withFileTypes: true})) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!/testdata|demos|testing$/.test(file)) index(file);
    } else if (file.endsWith('.js') && !file.endsWith('_test.js') && file !== base) {
      const text = fs.readFileSync(file, 'utf8');
      for (const found of text.matchAll(/^goog\.(?:provide|module)\(\s*['"]([^'"]+)['"]\s*\)/gm)) {
        if (!sources.has(found[1])) sources.set(found[1], {file, text});
      }
    }
  }
}
index(root);

const loaded = new Set();
function load(name) {
  const source = sources.get(name);
  if (!source) throw new Error(`no file of closure-library provides ${name}`);
  if (loaded.has(source.file)) return;
  loaded.add(source.file);
  const required = /^\s*(?:(?:const|let|var)\s+[^=;]+=\s*)?goog\.require\(\s*['"]([^'"]+)['"]\s*\)/gm;
  for (const found of source.text.matchAll(required)) load(found[1]);
  if (/^goog\.module\(/m.test(source.text)) {
    run(`goog.loadModule(function(exports) { "use strict"; ${source.text}\n; return exports; });`, source.file);
  } else {
    run(source.text, source.file);
  }
}

/** The sources that were loaded so far, in order. */
exports.scripts = scripts;
/** What closure-library provides under a name. */
exports.get = name => {
  load(name);
  return global.goog.module.get(name) ?? global.goog.getObjectByName(name);
};
