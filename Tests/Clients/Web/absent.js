// Stands for packages that the web SDK names and these runs do not reach: IndexedDB, regular expressions of pipelines.

exports.openDB = async () => { throw new Error('there is no IndexedDB here'); };
exports.deleteDB = async () => {};
exports.RE2JS = class {};
