// Runs programs one after the other in one process, because loading an SDK takes longer than a run. Each line of the
// input names the file of a program, and its environment.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { format } from "node:util";

let out = "";
for (const stream of ["log", "warn", "error"] as const) console[stream] = (...args: unknown[]) => { out += format(...args) + "\n"; };
for await (const line of createInterface({ input: process.stdin })) {
  const { file, env } = JSON.parse(line);
  Object.assign(process.env, env);
  let failed = false;
  out = "";
  try {
    await import(pathToFileURL(file).href);
  } catch (err) {
    failed = true;
    out += format(err);
  }
  process.stdout.write(JSON.stringify({ out, failed }) + "\n");
}
