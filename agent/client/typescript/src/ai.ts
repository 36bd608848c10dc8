// For the AI SDK: tools that wait for Countersign, and the answers to its approval requests.

import type { ModelMessage, ToolApprovalResponse, ToolSet } from "ai";

import { Countersign, read, Refusal, refusal, sentence } from "./client.ts";

/**
 * Returns tools that run only if Countersign approves the call, with the approved arguments. Each call ends the
 * generation with an approval request. So the program need not run while people decide.
 */
export function gated<T extends ToolSet>(gate: Countersign, tools: T): T {
  const out: ToolSet = {};
  for (const [name, tool] of Object.entries(tools)) {
    const run = tool.execute;
    if (!run) throw new Error(`the tool ${name} has no execute function, so Countersign can't run it after an approval`);
    gate.tools.add(name);
    const shown = tool.toModelOutput;
    const execute: typeof run = async (input, options) => {
      let ran = false;
      let out: unknown;
      try {
        out = await gate.run({ id: options.toolCallId, tool: name, args: JSON.stringify(input) }, async (args, edited) => {
          ran = true;
          let result: unknown = await run(edited ? await read(tool.inputSchema, args) : input, options);
          if (isStream(result)) for await (const part of result) result = part; // the last part is the result
          return result;
        }, { signal: options.abortSignal, noted: shown && ((result, countersign): Noted => ({ countersign, result })) });
      } catch (err) {
        if (!(err instanceof Refusal)) throw err;
        out = err.message;
      }
      return shown && !ran ? { countersign: out } : out;
    };
    out[name] = { ...tool, execute, needsApproval: true, ...(shown && { toModelOutput: withNotes(shown) }) } as ToolSet[string];
  }
  return out as T;
}

/** The output of a tool with toModelOutput, if the output has a note for the model. Without a run, it has no result. */
interface Noted {
  countersign: string;
  result?: unknown;
}

type ToModelOutput = NonNullable<ToolSet[string]["toModelOutput"]>;

/** Adds the notes for the model to toModelOutput, which gets only the results of the tool. */
function withNotes(shown: ToModelOutput): ToModelOutput {
  return async (options: Parameters<ToModelOutput>[0]): Promise<Awaited<ReturnType<ToModelOutput>>> => {
    const output = options.output as Noted | undefined;
    if (typeof output?.countersign !== "string") return shown(options);
    const note = output.countersign;
    if (!("result" in output)) return { type: "text", value: note };
    const of = await shown({ ...options, output: output.result });
    if (of.type === "content") return { ...of, value: [{ type: "text", text: note }, ...of.value] };
    const value = "value" in of ? of.value : of.reason;
    return { type: "text", value: `${note}\n${typeof value === "string" ? value : JSON.stringify(value)}` };
  };
}

function isStream(v: unknown): v is AsyncIterable<unknown> {
  return typeof v === "object" && v !== null && Symbol.asyncIterator in v;
}

/**
 * Waits until Countersign has decided about all open approval requests: requests for gated tools that have no answer
 * in the messages. Returns the answers, as the content of a message of the role "tool".
 */
export async function settle(gate: Countersign, messages: ModelMessage[], signal?: AbortSignal): Promise<ToolApprovalResponse[]> {
  const parts = messages.flatMap((m) => (typeof m.content === "string" ? [] : m.content as Part[]));
  const answered = new Set(parts.filter((p) => p.type === "tool-approval-response").map((p) => p.approvalId));
  const calls = new Map(parts.filter((p) => p.type === "tool-call").map((p) => [p.toolCallId, p]));
  const open = parts.filter((p) => p.type === "tool-approval-request" && !answered.has(p.approvalId) && gate.tools.has(calls.get(p.toolCallId)?.toolName ?? ""));
  return Promise.all(open.map(async ({ approvalId = "", toolCallId = "" }): Promise<ToolApprovalResponse> => {
    const call = calls.get(toolCallId);
    try {
      const r = await gate.decided({ id: toolCallId, tool: call?.toolName ?? "", args: JSON.stringify(call?.input) }, signal);
      if (r.status === "approved" || r.status === "succeeded") return { type: "tool-approval-response", approvalId, approved: true };
      throw new Refusal(sentence(r), r.status, r.id);
    } catch (err) {
      const known = refusal(err);
      if (!(known instanceof Refusal)) throw known;
      return { type: "tool-approval-response", approvalId, approved: false, reason: known.message };
    }
  }));
}

interface Part {
  type: string;
  approvalId?: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
}
