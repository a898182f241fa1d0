// Runs cells of JavaScript. Read by the host's bootstrap from descriptor 3 and executed in
// a function of its own. Cells come rewritten: their names are script-level variables.
'use strict';
const fs = require('fs');
const net = require('net');
const vm = require('vm');
const util = require('util');
const path = require('path');
const { createRequire } = require('module');

const NONCE = process.argv[1];
const REQUESTS = 3;
const FRAMES = 4;
const LONGEST_ARGUMENTS = 8 << 20;
const LONGEST_TEXT = 1 << 20;
const SHOWN_VARIABLES = 40;
const INTERRUPTED = Symbol('interrupted');
const LOADER = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;

const own = {
  cell: 0, active: false, seq: 0, call: 0, parts: [], echo: undefined, echoed: false, notes: [],
  failures: [], stop: null, seen: new Map(), calls: new Map(), buffer: Buffer.alloc(0),
};
const exit = process.exit.bind(process);
const wait = new Int32Array(new SharedArrayBuffer(4));

function writeAll(fd, data) {
  let at = 0;
  while (at < data.length) {
    try {
      at += fs.writeSync(fd, data, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      // The other side reads; it needs a moment.
      Atomics.wait(wait, 0, 0, 1);
    }
  }
}

function frame(message) {
  writeAll(FRAMES, Buffer.from(JSON.stringify(message).replace(/[\ud800-\udfff]/gu, '\ufffd') + '\n'));
}

function mark(what) {
  writeAll(1, Buffer.from(`\x1e${NONCE}:${own.cell}:${what}\x1e`));
}

function clip(text) {
  if (text.length <= LONGEST_TEXT) return text;
  const half = LONGEST_TEXT / 2;
  return `${text.slice(0, half)} [... ${text.length - LONGEST_TEXT} characters left out ...] ${text.slice(-half)}`;
}

function inspected(value) {
  try {
    if (value instanceof ToolText) return String(value);
    return clip(util.inspect(value, { depth: 4, maxArrayLength: 100, maxStringLength: 10000 }));
  } catch (error) {
    return `<a value that cannot be shown: ${error && error.message}>`;
  }
}

function imageType(bytes) {
  if (!(bytes instanceof Uint8Array) || bytes.length < 8) return null;
  if (bytes[0] === 0x89 && bytes[1] === 0x50) return 'image/png';
  return bytes[0] === 0xff && bytes[1] === 0xd8 ? 'image/jpeg' : null;
}

/// The forms of a value by their types.
function forms(value) {
  const type = imageType(value);
  if (type) {
    return { [type]: Buffer.from(value).toString('base64'), 'text/plain': `<${type}, ${value.length} bytes>` };
  }
  if (value instanceof ToolImage) return { [value.mimeType]: value.data, 'text/plain': inspected(value) };
  return { 'text/plain': inspected(value) };
}

function display(...values) {
  for (const value of values) {
    if (!own.active) return;
    own.seq += 1;
    mark(String(own.seq));
    frame({ kind: 'display', cell: own.cell, seq: own.seq, data: forms(value) });
  }
}

function budget(seconds) {
  frame({ kind: 'budget', cell: own.cell, seconds: Number(seconds) });
}

// ------------------------------------------------------------------ tools

class ToolError extends Error {
  constructor(text, details) {
    super(text);
    this.name = this.constructor.name;
    this.details = details;
  }
}
class ToolDenied extends ToolError {}
class ToolImage {
  constructor(mimeType, data) {
    this.mimeType = mimeType;
    Object.defineProperty(this, 'data', { value: data });
  }
  get bytes() {
    return Buffer.from(this.data, 'base64');
  }
}
class ToolText extends String {
  constructor(ok) {
    super(ok.text || '');
    const images = (ok.images || []).map((image) => new ToolImage(image.mime_type, image.data));
    Object.defineProperties(this, { images: { value: images }, details: { value: ok.details } });
  }
}

function ask(name, args) {
  if (typeof name !== 'string') throw new TypeError('tool(name, arguments): the name is a text');
  if (!own.active) throw new ToolError('no cell is running: tool() works only while one does');
  const given = JSON.stringify(args === undefined ? {} : args);
  if (given === undefined || given[0] !== '{') {
    throw new TypeError('tool(name, arguments): the arguments are an object');
  }
  if (given.length > LONGEST_ARGUMENTS) {
    throw new ToolError(`the arguments are ${given.length} characters, over the limit of ${LONGEST_ARGUMENTS}`);
  }
  own.call += 1;
  frame({ kind: 'tool', cell: own.cell, id: own.call, name, arguments: JSON.parse(given) });
  return own.call;
}

function result(reply) {
  if (reply.ok) return new ToolText(reply.ok);
  const Kind = reply.error.kind === 'denied' ? ToolDenied : ToolError;
  throw new Kind(reply.error.text, reply.error.details);
}

function tool(name, args) {
  const promise = new Promise((resolve, reject) => {
    const id = ask(name, args);
    own.calls.set(id, (reply) => {
      try {
        resolve(result(reply));
      } catch (error) {
        reject(error);
      }
    });
  });
  return promise;
}

/// Waits for the answer on the spot. What else arrives meanwhile is dealt with later.
tool.sync = (name, args) => {
  const id = ask(name, args);
  const chunk = Buffer.alloc(65536);
  for (;;) {
    for (const reply of takeReplies()) {
      if (reply.id === id) return result(reply);
      settle(reply);
    }
    try {
      const got = fs.readSync(REQUESTS, chunk);
      if (got === 0) process.reallyExit(0);
      own.buffer = Buffer.concat([own.buffer, chunk.subarray(0, got)]);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(wait, 0, 0, 0.2);
    }
  }
};

function* takeReplies() {
  for (const request of takeLines()) {
    if (request.op === 'reply') yield request;
    else setImmediate(() => serve(request));
  }
}

function settle(reply) {
  const done = own.calls.get(reply.id);
  own.calls.delete(reply.id);
  if (done) done(reply);
}

// ---------------------------------------------------------------- variables

const FIRST = new Set(Object.getOwnPropertyNames(globalThis));
const HIDDEN = new Set(['tool', 'display', 'budget', 'require', 'ToolError', 'ToolDenied']);

function kind(value) {
  try {
    if (value === null) return 'null';
    switch (typeof value) {
      case 'string':
        return value.length <= 50 ? `string ${JSON.stringify(value)}` : `string of ${value.length} characters`;
      case 'number': case 'boolean': case 'bigint':
        return `${typeof value} ${String(value)}`;
      case 'function':
        return /^class\b/.test(Function.prototype.toString.call(value)) ? 'class' : 'function';
      case 'object': {
        const name = (value.constructor && value.constructor.name) || 'object';
        if (Array.isArray(value) || ArrayBuffer.isView(value)) return `${name} of ${value.length}`;
        if (value instanceof Map || value instanceof Set) return `${name} of ${value.size}`;
        return name;
      }
      default:
        return typeof value;
    }
  } catch {
    return 'object';
  }
}

function size(value) {
  if (Array.isArray(value)) return value.length;
  return value instanceof Map || value instanceof Set ? value.size : 0;
}

function changes() {
  const now = new Map();
  const fresh = [];
  const changed = [];
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (FIRST.has(name) || HIDDEN.has(name) || name.startsWith('__cell')) continue;
    const value = globalThis[name];
    const known = own.seen.get(name);
    const print = [value, size(value)];
    now.set(name, print);
    if (!known) {
      if (value !== undefined) fresh.push([name, kind(value)]);
    } else if (!Object.is(known[0], value) || known[1] !== print[1]) {
      changed.push([name, kind(value)]);
    }
  }
  const gone = [...own.seen.keys()].filter((name) => !now.has(name));
  own.seen = now;
  const few = (all) => all.slice(0, SHOWN_VARIABLES);
  return { new: few(fresh), changed: few(changed), gone: few(gone) };
}

// -------------------------------------------------------------------- cells

class Leave extends Error {}

function stackOf(error) {
  if (!(error instanceof Error) && !(error && typeof error.stack === 'string')) {
    return `Uncaught ${inspected(error)}`;
  }
  const ours = (line) => /^\s+at /.test(line)
    && (line.includes('hostler-runner') || line.includes('node:') || line.includes('[eval]'));
  let stack = String(error.stack);
  // The engine's excerpt shows the rewritten text; where it does not parse it is all there is.
  if (!(error instanceof SyntaxError)) stack = stack.replace(/^cell\[\d+\]\.js:\d+\n[^]*?\n\n/, '');
  let text = stack.split('\n').filter((line) => !ours(line)).slice(0, 40).join('\n');
  if (error.cause !== undefined) text += `\ncaused by: ${stackOf(error.cause)}`;
  return clip(text);
}

function define(name, value) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

const given = { tool, display, budget, ToolError, ToolDenied };

function prepare() {
  for (const [name, value] of Object.entries(given)) {
    // A variable of the user's of that name is the user's.
    if (!Object.getOwnPropertyDescriptor(globalThis, name)) define(name, value);
  }
  if (!own.required || own.required.cwd !== process.cwd()) {
    const require = createRequire(path.join(process.cwd(), 'cell.js'));
    if (!own.required || globalThis.require === own.required.require) define('require', require);
    own.required = { cwd: process.cwd(), require };
  }
  define('__cell_echo', (value) => {
    own.echo = value;
    own.echoed = true;
    return value;
  });
  define('__cell_part', (part) => own.parts.push(part));
  define('__cell_named', (module, ...names) => {
    for (const name of names) {
      if (!(name in module)) throw new SyntaxError(`the module has no export named '${name}'`);
    }
    return module;
  });
  process.exit = (code) => {
    throw new Leave(code === undefined ? '' : String(code));
  };
}

async function runCell({ cell, code, shift }) {
  Object.assign(own, { cell, seq: 0, parts: [], echo: undefined, echoed: false, notes: [], failures: [] });
  let status = 'ok';
  let value = null;
  let error = null;
  const stopped = new Promise((_, reject) => {
    own.stop = () => reject(INTERRUPTED);
  });
  stopped.catch(() => {});
  const orStopped = (promise) => Promise.race([promise, stopped]);
  mark('begin');
  own.active = true;
  try {
    prepare();
    const options = { filename: `cell[${cell}].js`, columnOffset: -(shift || 0) };
    if (LOADER) options.importModuleDynamically = LOADER;
    new vm.Script(code, options).runInThisContext({ breakOnSigint: true });
    for (const part of own.parts) await orStopped(part());
    let last = own.echo;
    if (last && typeof last.then === 'function') last = await orStopped(last);
    if (own.calls.size > 0) {
      await orStopped(new Promise((resolve) => {
        const look = () => (own.calls.size > 0 ? setImmediate(look) : resolve());
        look();
      }));
    }
    // What was rejected and never looked at is told by the engine only now.
    await orStopped(new Promise(setImmediate));
    if (own.echoed && last !== undefined) value = forms(last);
  } catch (raised) {
    if (raised === INTERRUPTED || (raised && raised.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED')) {
      status = 'interrupted';
    } else if (raised instanceof Leave) {
      status = 'exit';
      own.notes.push(`process.exit(${raised.message}) was called: the cell ended, the interpreter and its variables are kept`);
    } else {
      status = 'error';
      error = stackOf(raised);
    }
  }
  if (own.failures.length > 0 && status === 'ok') {
    status = 'error';
    error = own.failures.join('\n');
  } else {
    own.notes.push(...own.failures);
  }
  own.active = false;
  own.calls.clear();
  let variables = {};
  try {
    variables = changes();
  } catch (raised) {
    own.notes.push(`internal: ${raised && raised.message}`);
  }
  mark('end');
  frame({ kind: 'done', cell, status, value, error, notes: own.notes, variables });
}

function* takeLines() {
  for (let at = own.buffer.indexOf(10); at >= 0; at = own.buffer.indexOf(10)) {
    const line = own.buffer.subarray(0, at).toString();
    own.buffer = own.buffer.subarray(at + 1);
    yield JSON.parse(line);
  }
}

function serve(request) {
  if (request.op === 'run') runCell(request);
  else if (request.op === 'reply') settle(request);
  else if (request.op === 'probe') frame({ kind: 'alive', n: request.n });
  else if (request.op === 'undo') {
    frame({ kind: 'refused', op: 'undo', why: 'JavaScript keeps no snapshots: the engine cannot be forked' });
  }
}

function failed(what) {
  return (reason) => {
    if (reason === INTERRUPTED || reason instanceof Leave) return;
    const text = `${what}: ${stackOf(reason)}`;
    if (own.active) own.failures.push(text);
    else process.stderr.write(`${text}\n`);
  };
}

process.on('unhandledRejection', failed('unhandled rejection'));
process.on('uncaughtException', failed('uncaught exception'));
process.on('SIGINT', () => {
  if (own.active && own.stop) own.stop();
});
process.argv.splice(1);
const requests = new net.Socket({ fd: REQUESTS, readable: true, writable: false });
requests.on('data', (data) => {
  own.buffer = Buffer.concat([own.buffer, data]);
  for (const request of takeLines()) serve(request);
});
requests.on('close', () => exit(0));
requests.on('error', () => exit(0));
frame({ kind: 'ready', protocol: 1, nonce: NONCE, pid: process.pid, version: process.versions.node, executable: process.execPath });
frame({ kind: 'kept', cell: 0, skipped: 'JavaScript keeps no snapshots' });
