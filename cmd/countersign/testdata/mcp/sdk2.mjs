// The official TypeScript SDK, version 2, and the official package for tasks, with the protocol 2026-07-28. It prints a
// line for each step.
import { pathToFileURL } from "node:url";

const [base, token, modules] = process.argv.slice(2);
const from = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/${path}`));
const { Client, StreamableHTTPClientTransport } = await from("client/dist/index.mjs");
const { createTaskSessionFromClient, resultFromTaskOutcome } = await from("ext-tasks/dist/client/index.js");
const { isTaskStatusNotificationV2 } = await from("ext-tasks/dist/core/v2/index.js");

const info = { name: "sdk2", version: "1" };
const client = new Client(info, { capabilities: {}, versionNegotiation: { mode: "auto" } });
await client.connect(new StreamableHTTPClientTransport(new URL(base + "/mcp"), { requestInit: { headers: { Authorization: "Bearer " + token } } }));
const refund = (amount) => ({ order_id: "ORD-123", amount, currency: "USD", reason: "broken" });
const call = (amount, options) => client.callTool({ name: "issue_refund", arguments: refund(amount) }, options);
const once = (step) => {
  let said = false;
  return () => said || console.log(step, (said = true));
};
const says = (step, result) => console.log(step, result.isError ? "error" : "ok", result._meta?.["io.modelcontextprotocol/tool-approval-disposition"], result.content[0].text);

console.log("connected", client.getNegotiatedProtocolVersion?.(), (await client.listTools()).tools.map((t) => t.name).join(","));
says("held", await call(5));
try {
  await call(6, { timeout: 300 });
} catch (e) {
  console.log("timeout", e.code);
}
says("repeated", await call(6, { onprogress: once("again") }));

// The SDK does not know results of the type task, so the package for tasks sends its requests by itself.
const protocolVersion = "2026-07-28";
let id = 1000;
const rawDispatch = async (request, options) => {
  const response = await fetch(base + "/mcp", {
    method: "POST",
    signal: options?.signal,
    headers: {
      Authorization: "Bearer " + token, "Content-Type": "application/json", Accept: "application/json, text/event-stream",
      "Mcp-Protocol-Version": protocolVersion, "Mcp-Method": request.method, "Mcp-Name": request.params?.name ?? request.params?.taskId,
    },
    body: JSON.stringify({ ...request, jsonrpc: "2.0", id: request.id ?? ++id }),
  });
  const text = await response.text();
  return JSON.parse(text.startsWith("{") ? text : text.slice(text.lastIndexOf("data: ") + 6));
};
const answers = [{ action: "accept", content: { answer: "Yes, by the carrier" } }, { action: "decline" }];
const session = createTaskSessionFromClient(client, {
  endpointId: "gateway", rawDispatch,
  v2RequestFraming: { protocolVersion, clientInfo: info, clientCapabilities: { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } } },
  onInputRequest: async ({ kind, params }) => {
    console.log("asked", kind, params.message, Object.keys(params.requestedSchema.properties).join());
    return answers.shift();
  },
});
const execution = await session.callTool("issue_refund", refund(7));
console.log("task");
const { outcome } = await execution.settle();
says("task", resultFromTaskOutcome(outcome));
const direct = await session.callTool("search_orders", { query: "ORD-123" });
says("direct", resultFromTaskOutcome((await direct.settle()).outcome));
await session.close();
await client.close();

// The SDK's client gets the notifications about a task.
const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const listener = new Client(info, { capabilities, versionNegotiation: { mode: "auto" } });
await listener.connect(new StreamableHTTPClientTransport(new URL(base + "/mcp"), { requestInit: { headers: { Authorization: "Bearer " + token } } }));
let status;
listener.fallbackNotificationHandler = async (n) => {
  if (n.params.status !== status) {
    status = n.params.status;
    console.log("notified", isTaskStatusNotificationV2({ jsonrpc: "2.0", ...n }), status);
    n.params.result && says("notified", n.params.result);
  }
};
const _meta = Object.fromEntries(Object.entries({ protocolVersion, clientInfo: info, clientCapabilities: capabilities }).map(([name, value]) => ["io.modelcontextprotocol/" + name, value]));
const { result } = await rawDispatch({ method: "tools/call", params: { name: "issue_refund", arguments: refund(8), _meta } });
const stream = await listener.listen({ taskIds: [result.taskId] });
console.log("closed", await stream.closed);
await listener.close();
