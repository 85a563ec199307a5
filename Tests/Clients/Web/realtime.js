// Runs two applications of the web SDK through a proxy that cuts connections. One performs sets, updates, increments and
// transactions, and registers an onDisconnect write; the other listens.
//   node realtime.js PORT WRITES MILLISECONDS_BETWEEN_CUTS

const {cutting} = require('./proxy.js');
const {app, database} = require(process.env.HEARTH_WEB_SDK);

const [port, writes, interval] = process.argv.slice(2).map(Number);
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

async function main() {
  const proxy = await cutting(port, interval);
  const open = name => database.getDatabase(app.initializeApp(
    {projectId: 'demo-web', apiKey: 'key', databaseURL: `http://127.0.0.1:${proxy.port}/?ns=demo-web`}, name));
  const [writer, listener] = [open('writer'), open('listener')];
  const base = `c${Date.now()}`;
  let seen = null;
  database.onValue(database.ref(listener, `${base}/items`), snapshot => { seen = snapshot.val(); });

  const began = Date.now();
  const acknowledged = [];
  let counted = 0;
  let disconnected = 0;
  for (let n = 0; n < writes; n += 1) {
    acknowledged.push(database.set(
      database.ref(writer, `${base}/items/k${n}`), {n, text: `é☃𝄞 ${n}`, at: database.serverTimestamp(), list: [1, 2]}));
    if (n % 10 === 5) {
      acknowledged.push(database.update(
        database.ref(writer, base), {[`items/k${n - 3}/more`]: database.increment(1000), [`other/k${n}`]: n}));
    }
    if (n % 10 === 0) {
      const counter = database.ref(writer, `${base}/counter`);
      acknowledged.push(database.runTransaction(counter, value => (value ?? 0) + 1).then(
        () => { counted += 1; },
        // If a cut loses the response to a transaction, the SDK fails it, because it cannot know whether it was executed.
        error => { if (error.message === 'disconnect') disconnected += 1; else throw error; }));
    }
    if (n % 5 === 0) await pause(50);
  }
  await Promise.all(acknowledged);
  proxy.stop();
  const seconds = (Date.now() - began) / 1000;

  await database.onDisconnect(database.ref(writer, `${base}/gone`)).set(true);
  const counter = (await database.get(database.ref(listener, `${base}/counter`))).val();
  let agrees = false;
  for (let attempt = 0; !agrees && attempt < 600; attempt += 1) {
    await pause(50);
    const stored = (await database.get(database.ref(writer, `${base}/items`))).val();
    agrees = Object.keys(stored).length === writes && JSON.stringify(stored) === JSON.stringify(seen)
      && Object.values(stored).every(item => item.more === undefined || item.more >= 1000);
  }
  database.goOffline(writer);
  let gone = false;
  for (let attempt = 0; !gone && attempt < 200; attempt += 1) {
    await pause(50);
    gone = (await database.get(database.ref(listener, `${base}/gone`))).val() === true;
  }
  console.log(JSON.stringify(
    {writes, seconds, cuts: proxy.cuts, agrees, counter, counted, disconnected, gone}));
  const inBounds = counter >= counted && counter <= counted + disconnected;
  process.exit(agrees && gone && inBounds ? 0 : 1);
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
