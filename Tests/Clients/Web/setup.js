// Sets up the environment that the web SDK's integration tests expect from their runner.

require('./browser.js');
require('chai').use(require('chai-as-promised'));
