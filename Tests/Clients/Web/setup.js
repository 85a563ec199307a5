// What the web SDK's own integration tests expect of their runner.

require('./browser.js');
require('chai').use(require('chai-as-promised'));
