// Runs two applications of the web SDK through a proxy that cuts connections: one writes, the other listens. In the end
// the listener must have the server's state, and it must have received no change twice.
//   node firestore.js streaming|long|auto PORT WRITES MILLISECONDS_BETWEEN_CUTS

require('./browser.js');
const {cutting} = require('./proxy.js');
const {app, firestore} = require(process.env.HEARTH_WEB_SDK);

const [mode, port, writes, interval] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

async function main() {
  const proxy = await cutting(port, interval);
  const settings = {
    host: `127.0.0.1:${proxy.port}`, ssl: false,
    experimentalForceLongPolling: mode === 'long', experimentalAutoDetectLongPolling: mode === 'auto',
  };
  const open = name =>
    firestore.initializeFirestore(app.initializeApp({projectId: 'demo-web', apiKey: 'key'}, name), settings);
  const [writer, listener] = [open('writer'), open('listener')];
  const collection = `c${Date.now()}`;
  const seen = new Map();
  let twice = 0;
  let snapshots = 0;
  const stop = firestore.onSnapshot(
    firestore.query(firestore.collection(listener, collection), firestore.orderBy('n')), snapshot => {
      snapshots += 1;
      for (const change of snapshot.docChanges()) {
        const known = seen.get(change.doc.id);
        const data = change.doc.data();
        if ((change.type === 'added') === (known !== undefined) || (known && known.count > data.count)) twice += 1;
        if (change.type === 'removed') seen.delete(change.doc.id);
        else seen.set(change.doc.id, data);
      }
    });

  const began = Date.now();
  const acknowledged = [];
  for (let n = 0; n < writes; n += 1) {
    acknowledged.push(firestore.setDoc(firestore.doc(writer, collection, `d${n}`), {
      n, count: 0, at: firestore.serverTimestamp(), text: `é☃𝄞 ${n}`, padding: 'x'.repeat(n % 7 === 0 ? 3000 : 3),
    }));
    if (n % 10 === 9) {
      const earlier = firestore.doc(writer, collection, `d${n - 5}`);
      acknowledged.push(firestore.updateDoc(earlier, {count: firestore.increment(1)}));
    }
    if (n % 5 === 0) await pause(200);
  }
  await Promise.all(acknowledged);
  proxy.stop();
  const seconds = (Date.now() - began) / 1000;

  const first = firestore.doc(writer, collection, 'd0');
  await firestore.runTransaction(writer, async transaction => {
    const before = await transaction.get(first);
    transaction.update(first, {count: before.data().count + 41});
  });
  const counted = await firestore.getCountFromServer(firestore.collection(writer, collection));
  const text = document => `${document.count} ${document.text} ${document.at?.toMillis()}`;
  let different = writes;
  for (let attempt = 0; different > 0 && attempt < 1200; attempt += 1) {
    await pause(100);
    if (seen.size < writes || seen.get('d0').count !== 41) continue;
    const stored = await firestore.getDocsFromServer(firestore.collection(writer, collection));
    different = stored.docs.filter(one => text(one.data()) !== text(seen.get(one.id))).length;
  }
  stop();
  await Promise.all([firestore.terminate(writer), firestore.terminate(listener)]);
  console.log(JSON.stringify(
    {mode, writes, seconds, cuts: proxy.cuts, snapshots, counted: counted.data().count, twice, different}));
  process.exit(twice === 0 && different === 0 && counted.data().count === writes ? 0 : 1);
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
