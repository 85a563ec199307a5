// Implements XMLHttpRequest in Node, which lacks it, as far as closure-library's XhrIo uses it.

const modules = {'http:': require('http'), 'https:': require('https')};
const agents = {};
for (const protocol in modules) agents[protocol] = new modules[protocol].Agent({keepAlive: true, maxSockets: 1000});

global.XMLHttpRequest = class XMLHttpRequest {
  readyState = 0;
  status = 0;
  statusText = '';
  responseText = '';
  responseType = '';
  withCredentials = false;
  #headers = {Origin: 'http://localhost:3000'};
  #received = {};
  #over = false;

  open(method, url) {
    this.method = method;
    this.url = new URL(url);
    this.#become(1);
  }

  setRequestHeader(name, value) {
    this.#headers[name] = value;
  }

  getResponseHeader(name) {
    const value = this.#received[name.toLowerCase()];
    return value === undefined ? null : String(value);
  }

  getAllResponseHeaders() {
    return Object.entries(this.#received).map(([name, value]) => `${name}: ${value}`).join('\r\n');
  }

  send(body) {
    const bytes = body == null ? null : Buffer.from(String(body));
    if (bytes) this.#headers['Content-Length'] = bytes.length;
    const options = {method: this.method, headers: this.#headers, agent: agents[this.url.protocol]};
    this.request = modules[this.url.protocol].request(this.url, options, response => {
      this.status = response.statusCode;
      this.statusText = response.statusMessage;
      this.#received = response.headers;
      response.setEncoding('utf8');
      this.#become(2);
      response.on('data', text => {
        if (this.#over) return;
        this.responseText += text;
        this.#become(3);
      });
      response.on('end', () => this.#end());
      for (const event of ['error', 'aborted', 'close']) response.on(event, () => this.#fail());
    });
    this.request.on('error', () => this.#fail());
    this.request.end(bytes ?? undefined);
  }

  abort() {
    this.#over = true;
    this.request?.destroy();
    this.readyState = 0;
  }

  #become(state) {
    this.readyState = state;
    this.onreadystatechange?.();
  }

  #end() {
    if (this.#over) return;
    this.#over = true;
    this.response = this.responseText;
    this.#become(4);
  }

  #fail() {
    if (this.#over) return;
    this.status = 0;
    this.responseText = '';
    this.#end();
  }
};
