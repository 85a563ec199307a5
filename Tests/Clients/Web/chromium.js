// Runs one bundle of tests in headless Chromium: chromium.js NAME MOCHA BUNDLE. MOCHA is a script of Mocha for browsers.
// Prints failures and slow tests as they happen, each with the time since the start and its duration, and then one line with
// the counts. Ends with 1 after a failure, and after LIMIT seconds. GREP is a pattern for the titles of the tests.
//
// The page is served by this process, because the server under test serves pages of this machine only. A page that does
// not report for two minutes counts as a failure.

const {spawn} = require('child_process');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const closure = require('./closure.js');

const [name, mocha, bundle] = process.argv.slice(2);
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
window.addEventListener('error', event => report('problem', {message: 'the page: ' + event.message}));`;
const middle = `
window.hearthClosure = {get: name => goog.module.get(name) || goog.getObjectByName(name)};
mocha.setup({ui: 'bdd', timeout: 40000, reporter: function() {}});
mocha.grep(new RegExp(${JSON.stringify(process.env.GREP || '')}));`;
const tail = `
const runner = mocha.run();
const title = test => test.fullTitle();
runner.on('test', test => report('begin', {title: title(test)}));
runner.on('pass', test => report('passed', {title: title(test), milliseconds: test.duration}));
runner.on('pending', test => report('skipped', {title: title(test)}));
runner.on('fail', (test, error) => report('failed', {
  title: title(test), milliseconds: test.duration, timedOut: error && error.code === 'ERR_MOCHA_TIMEOUT',
  message: String(error && error.stack || error),
}));
runner.on('end', () => report('end', {}));`;
const script = text => `<script>${text.replace(/<\/script/g, '<\\/script')}</script>\n`;
const page = `<!DOCTYPE html><meta charset="utf-8"><div id="mocha"></div>${script(head)}`
  + closure.scripts.map(script).join('')
  + `<script src="/mocha.js"></script>${script(middle)}<script src="/bundle.js"></script>${script(tail)}`;

const slow = 5000; // milliseconds
const began = Date.now();
const counts = {passed: 0, failed: 0, timedOut: 0, skipped: 0};
let current = 'the start';
let timer;
function alive() {
  clearTimeout(timer);
  timer = setTimeout(() => end(`the page does not report any more, since: ${current}`), 120_000);
}
const seconds = milliseconds => `${(milliseconds / 1000).toFixed(1)} s`;
function line(kind, fields) {
  const duration = fields.milliseconds === undefined ? '' : ` (${seconds(fields.milliseconds)})`;
  console.log(`  at ${seconds(Date.now() - began)} ${kind}${duration}: ${fields.title}`);
}

function report(kind, fields) {
  alive();
  switch (kind) {
    case 'begin':
      current = fields.title;
      break;
    case 'passed':
      counts.passed += 1;
      if (fields.milliseconds >= slow) line('slow', fields);
      break;
    case 'skipped':
      counts.skipped += 1;
      if (process.env.LIST_SKIPPED) line('skipped', fields);
      break;
    case 'failed':
      counts.failed += 1;
      if (fields.timedOut) counts.timedOut += 1;
      line(fields.timedOut ? 'timed out' : 'failed', fields);
      if (!fields.timedOut) console.log(`    ${fields.message.split('\n').slice(0, 3).join('\n    ')}`);
      break;
    case 'problem':
      end(fields.message);
      break;
    case 'end':
      end();
      break;
  }
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
    report(request.url.slice(1), JSON.parse(Buffer.concat(parts).toString()));
  });
});

const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'hearth-chromium-'));
let browser;
let ended = false;
function end(problem) {
  if (ended) return;
  ended = true;
  clearTimeout(timer);
  clearTimeout(limit);
  if (problem) {
    counts.failed += 1;
    console.log(`  ${problem}`);
  }
  console.log(`${name}: ${counts.passed} passing ${counts.failed} failing (${counts.timedOut} by timeout) ${counts.skipped} pending`
    + ` in ${seconds(Date.now() - began)}`);
  process.exitCode = counts.failed ? 1 : 0;
  browser?.kill();
  server.close();
  server.closeAllConnections();
}

/** Repeats the removal after failures, because other processes of Chromium may still write to the profile. */
function removeProfile(attempts) {
  try {
    fs.rmSync(profile, {recursive: true, force: true});
  } catch (error) {
    if (attempts === 0) throw error;
    setTimeout(removeProfile, 100, attempts - 1);
  }
}

const limit = setTimeout(() => end(`ended at the limit, in: ${current}`), 1000 * (process.env.LIMIT || 3000));
process.on('SIGTERM', () => end(`ended by a signal, in: ${current}`));

server.listen(0, '127.0.0.1', () => {
  alive();
  browser = spawn(process.env.CHROMIUM || 'chromium', [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-dev-shm-usage',
    `--user-data-dir=${profile}`, `http://localhost:${server.address().port}/`,
  ], {stdio: 'ignore'});
  browser.on('error', error => { console.log(`  ${error.message}`); process.exit(1); });
  browser.on('exit', () => {
    end('Chromium ended before the tests');
    removeProfile(50);
  });
});
