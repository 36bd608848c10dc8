// Uses the client without an SDK, and prints what comes of it.

import { Countersign, Refusal } from "countersign-client";

const options = { address: process.env.GATE!, token: process.env.TOKEN!, patience: 5000 };
const gate = new Countersign({ ...options, answer: (question, call) => `${call.id} says: because ${question}` });
const calm = new Countersign({ ...options, patience: 0, accepts: ["approve", "reject"] });
console.warn = (text: string) => console.log(`warned: ${text}`);

async function show(id: string, with_: Countersign, args: string) {
  try {
    const out = await with_.run({ id, tool: "deploy", args, summary: "tests passed" }, (bytes) => { console.log(`${id} ran: ${bytes}`); return { done: id }; });
    console.log(`${id} returns: ${JSON.stringify(out)}`);
  } catch (err) {
    console.log(`${id} throws${err instanceof Refusal ? " a refusal" : ""}: ${(err as Error).message}`);
  }
}

await show("bytes", gate, ' { "amount" : 12345678901234567890.10, "note":"<a & ü>" }\n');
await show("question", gate, "{}");
await show("busy", gate, "{}");
await show("claim-lost", gate, "{}");
await show("report-lost", calm, "{}");
await show("edited", gate, '{"n":1}');
await show("other-bytes", gate, '{"n":1}');
await show("running", gate, "{}");
await show("no-object", gate, "[]");
for (const address of ["http://example.com", "ftp://127.0.0.1", "https://user@example.com", "https://example.com?x=1"]) {
  try {
    new Countersign({ ...options, address });
    console.log(`${address} is accepted`);
  } catch (err) {
    console.log(`refused: ${address}`);
  }
}
