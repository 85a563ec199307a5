// Measures Google's web SDK in Node by the same steps as the measurements of the Swift SDK. It has no cache on disk.
//   node measure.js HOST:PORT WRITES EVENTS
// A run of pending writes ends after LIMIT seconds; the row then has the number of writes that were made.

const {app, database: db} = require(process.env.HEARTH_WEB_SDK);

const [server, writes, events] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const LIMIT = 60;
let apps = 0;

function open(namespace) {
  apps += 1;
  const options = {projectId: namespace, apiKey: 'key', databaseURL: `http://${server}/?ns=${namespace}`};
  return db.getDatabase(app.initializeApp(options, `app${apps}`));
}

const now = () => Number(process.hrtime.bigint()) / 1e9;
/** The processor time of this process, in seconds. */
const processor = () => { const used = process.cpuUsage(); return (used.user + used.system) / 1e6; };
const short = value => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
const pause = () => new Promise(resolve => setImmediate(resolve));

/** Makes writes offline, and sends them. */
async function pendingWrites(count, isObserved) {
  const client = open(`web-writes-${count}-${isObserved}`);
  db.goOffline(client);
  const list = db.ref(client, 'list');
  if (isObserved) {
    db.onValue(list, () => {});
    db.onChildAdded(list, () => {});
  }
  const tenth = count / 10;
  const start = now();
  const [made, answered, pending] = [[], [], []];
  for (let part = 0; part < 10 && now() - start < LIMIT; part += 1) {
    const began = processor();
    const answers = [];
    for (let n = part * tenth; n < (part + 1) * tenth; n += 1) {
      answers.push(db.set(db.child(list, `item${n}`), {number: n, text: 'some text'}));
    }
    await pause();
    made.push(processor() - began);
    pending.push(Promise.all(answers));
  }
  const setting = isObserved ? 'web SDK, two observers' : 'web SDK';
  row('write', count, setting, made, tenth);
  db.goOnline(client);
  const online = now();
  for (const part of pending) {
    const began = processor();
    const rest = Math.max(0, LIMIT - (now() - online));
    const isLate = new Promise(resolve => { setTimeout(() => resolve(true), rest * 1e3).unref(); });
    if (await Promise.race([part.then(() => false), isLate])) break;
    answered.push(processor() - began);
  }
  row('acknowledge', count, setting, answered, tenth);
  db.goOffline(client);
}

function row(action, count, setting, times, tenth) {
  if (times.length === 0) return console.log(`| ${action}, ${count} pending, ${setting} | more than ${LIMIT} s for a tenth | | |`);
  const [first, last] = [times[0], times[times.length - 1]].map(time => time / tenth * 1e6);
  const part = times.length < 10 ? ` (ended after ${times.length * tenth})` : '';
  return console.log(
    `| ${action}, ${count} pending, ${setting}${part} | ${short(first)} µs | ${short(last)} µs | ${short(last / first)} |`);
}

/** Receives the first value of a location with many children. */
async function initialListen(children) {
  const writer = open(`web-listen-${children}`);
  for (let start = 0; start < children; start += 1_000) {
    const part = {};
    for (let n = start; n < Math.min(start + 1_000, children); n += 1) part[`item${n}`] = {number: n, text: 'some text'};
    await db.update(db.ref(writer, 'list'), part);
  }
  db.goOffline(writer);
  const reader = open(`web-listen-${children}`);
  const began = processor();
  const size = await new Promise(resolve => {
    db.onValue(db.ref(reader, 'list'), snapshot => resolve(snapshot.size));
  });
  const time = short((processor() - began) * 1e3);
  console.log(`| first value, processor time, ${children} children, web SDK | | ${time} ms | |`);
  if (size !== children) console.log(`the listen gave ${size} children`);
  db.goOffline(reader);
}

/** One client writes, another one observes. */
async function eventRate(count) {
  const [writer, reader] = [open('web-events'), open('web-events')];
  const list = db.ref(reader, 'list');
  await db.get(db.ref(reader, 'none'));
  await db.get(db.ref(writer, 'none'));
  const [began, used] = [now(), processor()];
  await new Promise(resolve => {
    const see = snapshot => { if (snapshot.val() === count - 1) resolve(); };
    db.onChildAdded(list, see);
    db.onChildChanged(list, see);
    for (let n = 0; n < count; n += 1) db.set(db.ref(writer, `list/item${n % 1_000}`), n);
  });
  console.log(`| changes of 1,000 children a second, web SDK | | ${short(count / (now() - began))} (received) | |`);
  console.log(`| processor time of a change, web SDK | | ${short((processor() - used) / count * 1e6)} µs | |`);
  db.goOffline(writer);
  db.goOffline(reader);
}

async function main() {
  for (const isObserved of [false, true]) {
    for (const count of [writes / 10, writes]) await pendingWrites(count, isObserved);
  }
  for (const children of [10_000, 100_000]) await initialListen(children);
  await eventRate(events);
  process.exit(0);
}

main();
