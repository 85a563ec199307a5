// Stands for modules of Node that Mocha names and hardly uses in a browser.

module.exports = () => ({});
module.exports.isatty = () => false;
module.exports.release = () => '';
