// The measurements of FirestoreClientBenchmarks with the official web SDK, whose cache is in memory because Node has no
// IndexedDB. `make web-sdk BENCH=1` runs it.
//   node web.js PORT [DOCUMENTS] [WRITES]

const net = require('net');
require('../../Tests/Clients/Web/browser.js');
const {app, firestore} = require(process.env.HEARTH_WEB_SDK);

const [port, documents, writes] = [Number(process.argv[2]), Number(process.argv[3] || 100000), Number(process.argv[4] || 10000)];
const roundTrip = 300;

const row = (measurement, result) => console.log(`| ${measurement} | ${result} |`);
const short = value => value.toPrecision(3);
const time = async work => {
  const began = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - began) / 1e9;
};

function open(name, at = port) {
  const instance = firestore.initializeFirestore(
    app.initializeApp({projectId: 'demo-bench', apiKey: 'key'}, name), {
      host: `127.0.0.1:${at}`, ssl: false,
      localCache: firestore.memoryLocalCache({garbageCollector: firestore.memoryLruGarbageCollector({cacheSizeBytes: -1})}),
    });
  return instance;
}

const sample = number => ({
  title: `document number ${number}`, number, group: Math.floor(number / 10), share: number / 7,
  tags: ['a', `b${number % 10}`], author: {name: 'somebody', born: 1775},
});

async function queuedWrites(count) {
  const client = open('queued');
  await firestore.disableNetwork(client);
  const stop = firestore.onSnapshot(firestore.collection(client, 'queued'), () => {});
  const settle = () => firestore.getDocFromCache(firestore.doc(client, 'queued', 'none')).catch(() => {});
  await settle();
  const before = process.memoryUsage().rss;
  const times = [];
  for (let part = 0; part < 10; part += 1) {
    times.push(await time(async () => {
      for (let number = 0; number < count / 10; number += 1) {
        firestore.setDoc(firestore.doc(client, 'queued', `d${part * (count / 10) + number}`), sample(number));
      }
      await settle();
    }));
  }
  const growth = (process.memoryUsage().rss - before) / 2 ** 20;
  stop();
  row(`${count} queued writes under a listener`,
    `${short(times[0] / count * 1e7)} µs a write at first, ${short(times[9] / count * 1e7)} µs at the end; ${short(growth)} MiB`);
}

async function initialSnapshot(count) {
  const writer = open(`writer${count}`);
  for (let start = 0; start < count; start += 500) {
    const batch = firestore.writeBatch(writer);
    for (let number = start; number < Math.min(start + 500, count); number += 1) {
      batch.set(firestore.doc(writer, `initial${count}`, `d${number}`), sample(number));
    }
    await batch.commit();
  }
  const reader = open(`reader${count}`);
  const seconds = await time(() => new Promise(resolve => {
    const stop = firestore.onSnapshot(
      firestore.collection(reader, `initial${count}`), {includeMetadataChanges: true}, snapshot => {
        if (snapshot.metadata.fromCache || snapshot.size !== count) return;
        stop();
        resolve();
      });
  }));
  await firestore.terminate(writer);
  await firestore.terminate(reader);
  row(`initial snapshot of ${count} documents`, `${short(seconds * 1e3)} ms, ${short(seconds / count * 1e6)} µs a document`);
}

async function localEvent(count) {
  const client = open('local');
  await firestore.disableNetwork(client);
  const document = firestore.doc(client, 'local', 'a');
  let expected = -1;
  let resume = () => {};
  const stop = firestore.onSnapshot(document, snapshot => {
    if (snapshot.get('n') === expected) resume();
  });
  const times = [];
  for (let number = 0; number < count; number += 1) {
    expected = number;
    times.push(await time(() => new Promise(resolve => {
      resume = resolve;
      firestore.setDoc(document, {n: number});
    })));
  }
  stop();
  times.sort((a, b) => a - b);
  row('local write to local event', `p50 ${short(times[count / 2] * 1e6)} µs, p99 ${short(times[count * 0.99] * 1e6)} µs`);
}

async function slowLink(count) {
  const relay = net.createServer(client => {
    const upstream = net.connect(port, '127.0.0.1');
    const forward = (source, target) => source.on('data', bytes => setTimeout(() => target.write(bytes), roundTrip / 2));
    forward(client, upstream);
    forward(upstream, client);
    for (const [end, other] of [[client, upstream], [upstream, client]]) {
      end.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
  });
  await new Promise(resolve => relay.listen(0, '127.0.0.1', resolve));
  const client = open('slow', relay.address().port);
  await firestore.setDoc(firestore.doc(client, 'slow', 'first'), {});
  const seconds = await time(async () => {
    for (let number = 0; number < count; number += 1) firestore.setDoc(firestore.doc(client, 'slow', `d${number}`), {n: number});
    await firestore.waitForPendingWrites(client);
  });
  row(`${count} queued writes over a round trip of 300 ms`,
    `${short(seconds)} s, ${short(count / (seconds * 1e3 / roundTrip))} writes a round trip`);
}

function bundle(count) {
  const root = 'projects/demo-bench/databases/(default)/documents';
  const at = {seconds: 1700000000, nanos: 0};
  const parts = [];
  const add = element => {
    const json = JSON.stringify(element);
    parts.push(`${Buffer.byteLength(json)}${json}`);
  };
  for (let number = 0; number < count; number += 1) {
    const name = `${root}/c/d${number}`;
    add({documentMetadata: {name, readTime: at, exists: true}});
    add({document: {
      name, createTime: at, updateTime: at,
      fields: {
        title: {stringValue: `document number ${number}`}, number: {integerValue: `${number}`},
        group: {integerValue: `${Math.floor(number / 10)}`},
      },
    }});
  }
  const body = parts.join('');
  const metadata = JSON.stringify({
    metadata: {id: `bench${count}`, version: 1, createTime: at, totalDocuments: count, totalBytes: `${body.length}`},
  });
  return `${metadata.length}${metadata}${body}`;
}

async function cachedQuery(count) {
  const client = open(`cached${count}`);
  await firestore.disableNetwork(client);
  const text = bundle(count);
  row(`loading a bundle of ${count} documents`, `${short(await time(() => firestore.loadBundle(client, text)))} s`);
  const all = firestore.collection(client, 'c');
  const queries = {
    'ten matches': firestore.query(all, firestore.where('group', '==', count / 20)),
    'first ten of an order': firestore.query(all, firestore.orderBy('number'), firestore.limit(10)),
  };
  for (const [name, query] of Object.entries(queries)) {
    const times = [];
    for (let run = 0; run < 11; run += 1) {
      times.push(await time(async () => {
        const found = await firestore.getDocsFromCache(query);
        if (found.size !== 10) throw new Error(`${found.size} documents`);
      }));
    }
    const first = times.shift();
    times.sort((a, b) => a - b);
    row(`cached query over ${count} documents, ${name}`, `first ${short(first * 1e3)} ms, then p50 ${short(times[5] * 1e3)} ms`);
  }
}

async function decodeRate(count) {
  const client = open('decode');
  await firestore.disableNetwork(client);
  firestore.setDoc(firestore.doc(client, 'decode', 'a'), sample(1));
  const document = await firestore.getDocFromCache(firestore.doc(client, 'decode', 'a'));
  let total = 0;
  const seconds = await time(async () => {
    for (let number = 0; number < count; number += 1) total += document.data().number;
  });
  row('decoding a document of 200 bytes', `${short(seconds / count * 1e6)} µs as an object`);
}

async function main() {
  console.log('| measurement | result |\n|---|---|');
  for (const count of [1000, 10000]) await initialSnapshot(count);
  await localEvent(1000);
  await slowLink(200);
  for (const count of [1000, 10000, 100000]) if (count <= documents) await cachedQuery(count);
  await decodeRate(10000);
  await queuedWrites(writes);
  process.exit(0);
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
