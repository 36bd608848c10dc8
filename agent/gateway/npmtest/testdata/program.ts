// This program uses a client that is generated from the gateway's OpenAPI description.
import createClient from "openapi-fetch";
import type { components, paths } from "./description.js";

const gateway = createClient<paths>({ baseUrl: process.env.GATE!, headers: { Authorization: "Bearer " + process.env.TOKEN } });

type Answer<T> = { data?: T; error?: components["schemas"]["Problem"] };
function data<T>({ data, error }: Answer<T>): T {
  if (data === undefined) throw new Error(`${error?.status} ${error?.type}: ${error?.detail}`);
  return data;
}

async function ask(key: string, amount: number) {
  const args = { order_id: "ORD-123", amount, currency: "USD", reason: "It arrived broken" };
  return data(await gateway.POST("/v1/requests", { params: { header: { "Idempotency-Key": key } }, body: { tool: "issue_refund", args } }));
}

let request = await ask("generated-1", 49.99);
const { id } = request;
const path = { id };
while (request.status === "pending") {
  const answer = data(await gateway.GET("/v1/requests/{id}", { params: { path, query: { wait: 30 } } }));
  if (typeof answer === "string") throw new Error("the answer is a stream of events");
  request = answer;
}
const { args_sha256 } = request;
const claimed = data(await gateway.POST("/v1/requests/{id}/claim", { params: { path }, body: { args_sha256 } }));
const again = await gateway.POST("/v1/requests/{id}/claim", { params: { path }, body: { args_sha256 } });
const reported = data(await gateway.POST("/v1/requests/{id}/outcome", { params: { path }, body: { status: "succeeded", text: "refunded" } }));
const other = await ask("generated-2", 9.99);
const withdrawn = data(await gateway.POST("/v1/requests/{id}/withdraw", { params: { path: { id: other.id } } }));
const keys = data(await gateway.GET("/.well-known/jwks.json")).keys;
console.log(request.status, request.decision?.by[0].role, claimed.status, again.error?.type, reported.disposition, withdrawn.status, keys.length);

// The compiler must refuse these lines. If the description did not give the types, the compiler would accept them.
export async function wrong() {
  // @ts-expect-error: the arguments are missing
  await gateway.POST("/v1/requests", { params: { header: { "Idempotency-Key": "wrong" } }, body: { tool: "issue_refund" } });
  // @ts-expect-error: the key is missing
  await gateway.POST("/v1/requests", { body: { tool: "issue_refund", args: {} } });
  // @ts-expect-error: there is no such status
  await gateway.POST("/v1/requests/{id}/outcome", { params: { path }, body: { status: "done" } });
  // @ts-expect-error: there is no such status
  return request.status === "waiting";
}
