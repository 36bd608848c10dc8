// For the OpenAI Agents SDK: tools that wait for Countersign, and the decisions about a run's interruptions.

import type { RunContext, RunState, ToolInputParameters, ToolOptions, ToolOutputSchema } from "@openai/agents";

import { Countersign, read, Refusal, refusal, sentence } from "./client.ts";

type Execute = (input: unknown, context?: RunContext<any>, details?: { toolCall?: { callId: string; arguments: string }; signal?: AbortSignal }) => unknown;

/**
 * Returns the options of a tool that runs only if Countersign approves the call, with the approved arguments. Each call
 * interrupts the run. So the program need not run while people decide.
 */
export function gated<P extends ToolInputParameters = undefined, C = unknown, O extends ToolOutputSchema | undefined = undefined>(
  gate: Countersign, options: ToolOptions<P, C, O>,
): ToolOptions<P, C, O> {
  const run = options.execute as Execute;
  const name = options.name ?? run.name;
  gate.tools.add(name);
  const execute: Execute = async (input, context, details) => {
    const call = details?.toolCall;
    if (!call) throw new Error(`the call of ${name} has no id, so Countersign can't be asked about it`);
    try {
      return await gate.run({ id: call.callId, tool: name, args: call.arguments }, async (args, edited) => {
        return run(edited ? await read(options.parameters, args) : input, context, details);
      }, { signal: details?.signal });
    } catch (err) {
      if (err instanceof Refusal) return err.message;
      throw err;
    }
  };
  return { ...options, name, execute, needsApproval: true } as ToolOptions<P, C, O>;
}

/** Waits until Countersign has decided about all interruptions of gated tools, and puts the decisions into the state. */
export async function settle(gate: Countersign, state: RunState<any, any>, signal?: AbortSignal): Promise<void> {
  await Promise.all(state.getInterruptions().map(async (item) => {
    const call = item.rawItem;
    if (call.type !== "function_call" || !gate.tools.has(call.name)) return;
    try {
      const r = await gate.decided({ id: call.callId, tool: call.name, args: call.arguments }, signal);
      if (r.status === "approved" || r.status === "succeeded") return state.approve(item);
      throw new Refusal(sentence(r), r.status, r.id);
    } catch (err) {
      const known = refusal(err);
      if (!(known instanceof Refusal)) throw known;
      state.reject(item, { message: known.message });
    }
  }));
}
