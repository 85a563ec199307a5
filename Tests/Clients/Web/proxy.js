// A proxy that cuts a random one of its connections at intervals, even in the middle of a message.

const net = require('net');

/** Listens on a free port, relays to `port`, and cuts a connection every `interval` milliseconds until `stop()`. */
exports.cutting = async (port, interval) => {
  const pairs = new Set();
  const server = net.createServer(client => {
    const upstream = net.connect(port, '127.0.0.1');
    const pair = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    pairs.add(pair);
    client.on('data', bytes => upstream.write(bytes));
    upstream.on('data', bytes => client.write(bytes));
    for (const end of [client, upstream]) end.on('error', pair).on('close', pair);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const proxy = {port: server.address().port, cuts: 0};
  const timer = setInterval(() => {
    const all = [...pairs];
    if (all.length === 0) return;
    proxy.cuts += 1;
    all[Math.floor(Math.random() * all.length)]();
  }, interval);
  proxy.stop = () => clearInterval(timer);
  return proxy;
};
