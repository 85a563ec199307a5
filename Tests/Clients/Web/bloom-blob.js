// Replaces the web SDK's compiled arithmetic of bloom filters by closure-library's sources.

const closure = globalThis.hearthClosure ?? require(process.env.HEARTH_CLOSURE_LOADER);

exports.Md5 = closure.get('goog.crypt.Md5');
exports.Integer = closure.get('goog.math.Integer');
