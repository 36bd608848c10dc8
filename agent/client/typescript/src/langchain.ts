// For LangChain: middleware that lets tools run only if Countersign approves the call, and the decisions for which the
// human-in-the-loop middleware waits.

import { createMiddleware, ToolMessage, type HITLRequest, type HITLResponse } from "langchain";

import { Countersign, Refusal, refusal, sentence, type Request } from "./client.ts";

/**
 * Returns middleware with which these tools run only if Countersign approves the call, with the approved arguments. If
 * the agent is given such a tool by its name, a mistake in the name leaves the tool without Countersign.
 */
export function gated(gate: Countersign, tools: (string | { name: string })[]) {
  const names = new Set(tools.map((tool) => (typeof tool === "string" ? tool : tool.name)));
  for (const name of names) gate.tools.add(name);
  return createMiddleware({
    name: "Countersign",
    wrapToolCall: async (request, handler) => {
      const call = request.toolCall;
      if (!names.has(call.name)) return handler(request);
      const answer = (content: string, status: "success" | "error") => new ToolMessage({ content, status, name: call.name, tool_call_id: call.id ?? "" });
      try {
        const out = await gate.run({ id: id(call), tool: call.name, args: JSON.stringify(call.args) }, (args, edited) => {
          return handler(edited ? { ...request, toolCall: { ...call, args: JSON.parse(args) } } : request);
        }, {
          signal: request.runtime.signal,
          failed: (m) => ToolMessage.isInstance(m) && m.status === "error",
          text: (m) => (ToolMessage.isInstance(m) ? m.text : ""),
          noted: (m, note) => {
            if (ToolMessage.isInstance(m)) m.content = typeof m.content === "string" ? `${note}\n${m.content}` : [{ type: "text", text: note }, ...m.content];
            return m;
          },
        });
        return typeof out === "string" ? answer(out, "success") : out;
      } catch (err) {
        if (err instanceof Refusal) return answer(err.message, "error");
        throw err;
      }
    },
  });
}

/**
 * Waits until Countersign has decided about the calls that interrupted an agent, and returns the decisions. state is
 * the agent's result, or the state that its checkpointer stored. If approvers change arguments, the middleware uses the
 * changed arguments.
 */
export async function settle(gate: Countersign, state: Interrupted, signal?: AbortSignal): Promise<HITLResponse> {
  const request = state.__interrupt__?.[0]?.value as HITLRequest | undefined;
  if (!request?.actionRequests) throw new Error("the agent does not wait for decisions");
  const calls = state.messages.map((m) => ("tool_calls" in m ? [...(m.tool_calls as ToolCall[])] : [])).findLast((list) => list.length) ?? [];
  const settled = await Promise.all(request.actionRequests.map(async (action): Promise<Request | Refusal> => {
    const args = JSON.stringify(action.args);
    if (!gate.tools.has(action.name)) throw new Error(`the tool ${action.name} is not gated, so settle can't decide about its call`);
    // The requests are in the order of the model's calls. Calls without a request need no decision, so skip them.
    while (calls.length && !(calls[0]!.name === action.name && JSON.stringify(calls[0]!.args) === args)) calls.shift();
    const call = calls.shift();
    if (!call) throw new Error(`the interrupted call of ${action.name} is not among the messages`);
    try {
      const r = await gate.decided({ id: id(call), tool: action.name, args }, signal);
      return r.status === "approved" || r.status === "succeeded" ? r : new Refusal(sentence(r), r.status, r.id);
    } catch (err) {
      const known = refusal(err);
      if (known instanceof Refusal) return known;
      throw known;
    }
  }));
  // If one call is rejected, the middleware runs none of the calls, and calls the model. So withdraw the approved
  // calls.
  if (settled.some((s) => s instanceof Refusal)) {
    await Promise.all(settled.map((s) => !(s instanceof Refusal) && s.status === "approved" && gate.withdraw(s.id, "The agent makes none of these calls, because one of them was rejected.")));
  }
  return { decisions: settled.map((s) => (s instanceof Refusal ? { type: "reject", message: s.message } : { type: "approve" })) };
}

function id(call: Pick<ToolCall, "id" | "name">): string {
  if (!call.id) throw new Error(`the call of ${call.name} has no id, so Countersign can't be asked about it`);
  return call.id;
}

interface Interrupted {
  messages: object[];
  __interrupt__?: { value?: unknown }[];
}

interface ToolCall {
  id?: string;
  name: string;
  args: Record<string, unknown>;
}
