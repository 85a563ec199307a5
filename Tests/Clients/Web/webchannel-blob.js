// Replaces the web SDK's compiled WebChannel by closure-library's sources. It exports the same names.

const closure = globalThis.hearthClosure ?? require(process.env.HEARTH_CLOSURE_LOADER);
const statistics = closure.get('goog.labs.net.webChannel.requestStats');

exports.createWebChannelTransport = closure.get('goog.net.createWebChannelTransport');
exports.getStatEventTarget = () => statistics.getStatEventTarget();
exports.WebChannel = closure.get('goog.net.WebChannel');
exports.EventType = closure.get('goog.net.EventType');
exports.ErrorCode = closure.get('goog.net.ErrorCode');
exports.XhrIo = closure.get('goog.net.XhrIo');
exports.FetchXmlHttpFactory = closure.get('goog.net.FetchXmlHttpFactory');
exports.Event = statistics.Event;
exports.Stat = statistics.Stat;
