// Replaces packages that the web SDK imports but these tests never use: IndexedDB, regular expressions of pipelines.

exports.openDB = async () => { throw new Error('there is no IndexedDB here'); };
exports.deleteDB = async () => {};
exports.RE2JS = class {};
