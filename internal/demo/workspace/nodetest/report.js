// What the app tells the test.
'use strict';

function write(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

// report says that the app was told something.
exports.report = (saw, what) => write({ saw, what });

// answer is the outcome of an order.
exports.answer = (id, outcome) => write({ id, ...outcome });

const log = (...words) => process.stderr.write(`${words.join(' ')}\n`);

exports.logger = { debug() {}, info() {}, warn: log, error: log, setLevel() {}, getLevel: () => 'warn', setName() {} };
