// The output of the app for the test.
'use strict';

function write(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

// report writes that the app received something.
exports.report = (saw, what) => write({ saw, what });

// answer writes the outcome of an order.
exports.answer = (id, outcome) => write({ id, ...outcome });

const log = (...words) => process.stderr.write(`${words.join(' ')}\n`);

exports.logger = { debug() {}, info() {}, warn: log, error: log, setLevel() {}, getLevel: () => 'warn', setName() {} };
