// Runs one bundle of tests in headless Chromium: chromium.js NAME MOCHA BUNDLE [PATTERN]. MOCHA is a script of Mocha for
// browsers; tests whose title matches PATTERN are skipped. Prints the failures and one line with the counts, and exits with
// code 1 after a failure.
//
// The page is served by this process, because the server under test serves pages of this machine only. A page that does
// not report for two minutes counts as a failure.

const {spawn} = require('child_process');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const closure = require('./closure.js');

const [name, mocha, bundle, pattern] = process.argv.slice(2);
for (const file of ['./webchannel-blob.js', './bloom-blob.js']) {
  for (const found of fs.readFileSync(path.join(__dirname, file), 'utf8').matchAll(/closure\.get\('([^']+)'\)/g)) closure.get(found[1]);
}

const head = `
var CLOSURE_NO_DEPS = true;
var CLOSURE_UNCOMPILED_DEFINES = {'goog.ENABLE_DEBUG_LOADER': false, 'goog.DEBUG': false};
var process = {env: ${JSON.stringify(process.env, (key, value) => /^$|^(FIRESTORE|INCLUDE|RTDB|TEST)_/.test(key) ? value : undefined)}};
var Buffer = {isBuffer: () => false, prototype: {}};
function report(kind, fields) {
  const request = new XMLHttpRequest();
  request.open('POST', '/' + kind, false);
  request.send(JSON.stringify(fields));
}
window.addEventListener('error', event => report('problem', {title: 'the page', message: String(event.message)}));`;
const middle = `
window.hearthClosure = {get: name => goog.module.get(name) || goog.getObjectByName(name)};
mocha.setup({ui: 'bdd', timeout: 40000, reporter: function() {}});
${pattern ? `mocha.grep(new RegExp(${JSON.stringify(pattern)})).invert();` : ''}`;
const tail = `
const runner = mocha.run();
const counts = {passed: 0, failed: 0, skipped: 0};
runner.on('pass', test => { counts.passed += 1; report('alive', {}); });
runner.on('pending', () => { counts.skipped += 1; });
runner.on('fail', (test, error) => {
  counts.failed += 1;
  report('problem', {title: test.fullTitle(), message: String(error && error.stack || error)});
});
runner.on('end', () => report('end', counts));`;
const script = text => `<script>${text.replace(/<\/script/g, '<\\/script')}</script>\n`;
const page = `<!DOCTYPE html><meta charset="utf-8"><div id="mocha"></div>${script(head)}`
  + closure.scripts.map(script).join('')
  + `<script src="/mocha.js"></script>${script(middle)}<script src="/bundle.js"></script>${script(tail)}`;

let timer;
function alive() {
  clearTimeout(timer);
  timer = setTimeout(() => end({passed: 0, failed: 1, skipped: 0}, 'the page does not report any more'), 120_000);
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on('data', part => parts.push(part));
  request.on('end', () => {
    if (request.method === 'GET') {
      const file = {'/mocha.js': mocha, '/bundle.js': bundle}[request.url];
      const known = file !== undefined || request.url === '/';
      response.writeHead(known ? 200 : 404, {'content-type': file ? 'text/javascript; charset=utf-8' : 'text/html; charset=utf-8'});
      return response.end(file ? fs.readFileSync(file) : known ? page : '');
    }
    response.end();
    alive();
    const fields = JSON.parse(Buffer.concat(parts).toString());
    if (request.url === '/problem') console.log(`  ${fields.title}\n    ${fields.message.split('\n').slice(0, 3).join('\n    ')}`);
    if (fields.title === "the page") end({passed: 0, failed: 1, skipped: 0});
    if (request.url === "/end") end(fields);
  });
});

const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'hearth-chromium-'));
let browser;
function end(counts, problem) {
  clearTimeout(timer);
  if (problem) console.log(`  ${problem}`);
  console.log(`${name}: ${counts.passed} passing ${counts.failed} failing ${counts.skipped} pending`);
  process.exitCode = counts.failed ? 1 : 0;
  browser.on('exit', () => fs.rmSync(profile, {recursive: true, force: true, maxRetries: 5}));
  browser.kill();
  server.close();
  server.closeAllConnections();
}

server.listen(0, '127.0.0.1', () => {
  alive();
  browser = spawn(process.env.CHROMIUM || 'chromium', [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-dev-shm-usage',
    `--user-data-dir=${profile}`, `http://localhost:${server.address().port}/`,
  ], {stdio: 'ignore'});
  browser.on('error', error => { console.log(`  ${error.message}`); process.exit(1); });
});
