// The official TypeScript SDK, version 1, with the protocol 2025-11-25. It prints a line for each step.
import { pathToFileURL } from "node:url";

const [base, token, modules] = process.argv.slice(2);
const from = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/${path}`));
const { Client } = await from("client/index.js");
const { StreamableHTTPClientTransport } = await from("client/streamableHttp.js");
const { CallToolResultSchema } = await from("types.js");

const client = new Client({ name: "sdk1", version: "1" }, { capabilities: {} });
const transport = new StreamableHTTPClientTransport(new URL(base + "/mcp"), { requestInit: { headers: { Authorization: "Bearer " + token } } });
await client.connect(transport);
const refund = (amount) => ({ name: "issue_refund", arguments: { order_id: "ORD-123", amount, currency: "USD", reason: "broken" } });
const once = (step) => {
  let said = false;
  return () => said || console.log(step, (said = true));
};
const says = (step, result) => console.log(step, result.isError ? "error" : "ok", result._meta?.["io.modelcontextprotocol/tool-approval-disposition"], result.content[0].text);

console.log("connected", transport.protocolVersion, (await client.listTools()).tools.map((t) => t.name).join(","));
says("held", await client.callTool(refund(1)));

try {
  await client.callTool(refund(2), undefined, { timeout: 300 });
} catch (e) {
  console.log("timeout", e.code);
}
says("repeated", await client.callTool(refund(2), undefined, { onprogress: once("again") }));

for await (const m of client.experimental.tasks.callToolStream(refund(3), CallToolResultSchema, { task: {} })) {
  if (m.type === "taskCreated") {
    console.log("task", m.task.status, (await client.experimental.tasks.listTasks()).tasks.some((t) => t.taskId === m.task.taskId));
  } else if (m.type === "result") {
    says("task", m.result);
  }
}
for await (const m of client.experimental.tasks.callToolStream(refund(4), CallToolResultSchema, { task: {} })) {
  if (m.type === "taskCreated") {
    console.log("cancel", (await client.experimental.tasks.cancelTask(m.task.taskId)).status);
    break;
  }
}
await client.close();
