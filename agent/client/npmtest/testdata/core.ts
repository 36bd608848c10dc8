// Uses the client without an SDK, and prints what comes of it.

import { tool } from "ai";
import { Countersign, Refusal } from "countersign-client";
import { gated } from "countersign-client/ai";
import { settle } from "countersign-client/langchain";
import { z } from "zod";

const options = { address: process.env.GATE!, token: process.env.TOKEN!, patience: 5000 };
const gate = new Countersign({ ...options, answer: (question, call) => `${call.id} says: because ${question}` });
const calm = new Countersign({ ...options, patience: 0, accepts: ["approve", "reject"] });
console.warn = (text: string) => console.log(`warned: ${text}`);

async function show(id: string, with_: Countersign, args: string, signal?: AbortSignal) {
  try {
    const out = await with_.run({ id, tool: "deploy", args, summary: "tests passed" }, (bytes) => { console.log(`${id} ran: ${bytes}`); return { done: id }; }, { signal });
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
await show("older-replica", gate, "{}");
await show("edited", gate, '{"n":1}');
await show("other-bytes", gate, '{"n":1}');
await show("running", gate, "{}");
await show("no-object", gate, "[]");
await show("no-json", gate, '{"n":');
await show("über", gate, "{}");
await show("late-answer", gate, "{}");
await show("reopened", gate, "{}");
await show("paused", gate, "{}");
await show("expired", gate, "{}");
await show("unrun", gate, "{}");
await show("lost", gate, "{}");
await show("records-lost", gate, "{}");
await show("claim-unread", gate, "{}");
await show("cut-poll", new Countersign({ ...options, patience: 400 }), "{}");
const end = new AbortController();
await show("stopped", new Countersign({ ...options, onPending: (request, call) => { console.log(`${call.id} waits for ${request.waits_for} until ${request.expires_at}`); end.abort(); } }), "{}", end.signal);
await show("stopped-in-pause", new Countersign({ ...options, patience: 3_600_000 }), "{}", AbortSignal.timeout(100));
const circular: Record<string, unknown> = {};
circular.self = circular;
for (const [id, result] of Object.entries({ circular, bigint: 10n, "bigint-inside": { n: 10n }, surrogate: "half \ud83d", bare: Object.assign(Object.create(null), { n: 10n }) })) {
  const out = await gate.run<unknown>({ id, tool: "deploy", args: "{}", summary: "cut \ude00" }, () => result);
  console.log(`${id} returns the tool's result: ${out === result}`);
}
for (const id of ["shown", "shown-edited", "shown-rejected"]) {
  const deploy = gated(gate, {
    deploy: tool({ inputSchema: z.object({}), execute: () => ({ pages: [id] }), toModelOutput: ({ output }) => ({ type: "content", value: output.pages.map((text) => ({ type: "text", text })) }) }),
  }).deploy;
  const output = await deploy.execute!({}, { toolCallId: id, messages: [], context: {} });
  console.log(`${id}: ${JSON.stringify(await deploy.toModelOutput!({ toolCallId: id, input: {}, output: output as { pages: string[] } }))}`);
}
for (const address of ["http://example.com", "ftp://127.0.0.1", "https://user@example.com", "https://example.com?x=1"]) {
  try {
    new Countersign({ ...options, address });
    console.log(`${address} is accepted`);
  } catch (err) {
    console.log(`refused: ${address}`);
  }
}
const interrupt = { actionRequests: [{ name: "search", args: {} }], reviewConfigs: [] };
await settle(gate, { messages: [], __interrupt__: [{ value: interrupt }] }).catch((err) => console.log(err.message));
