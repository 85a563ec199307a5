// Replaces modules of Node that Mocha imports but hardly uses in a browser.

module.exports = () => ({});
module.exports.isatty = () => false;
module.exports.release = () => '';
