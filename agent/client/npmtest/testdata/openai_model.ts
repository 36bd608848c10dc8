import { type Model, setTracingDisabled, Usage } from "@openai/agents";

import { heard, next } from "./script.js";

setTracingDisabled(true);

class OpenAIModel implements Model {
  async getResponse(request: Parameters<Model["getResponse"]>[0]) {
    const items = typeof request.input === "string" ? [] : request.input;
    const results = items.filter((i) => i.type === "function_call_result").map((i) => (typeof i.output === "string" ? i.output : "text" in i.output ? i.output.text : JSON.stringify(i.output)));
    const calls = next(items.map((i) => (i.type === "function_call" ? i.callId : undefined)));
    return {
      usage: new Usage(),
      output: !calls.length
        ? [{ type: "message" as const, role: "assistant" as const, status: "completed" as const, content: [{ type: "output_text" as const, text: heard(results) }] }]
        : calls.map(({ id, args }) => ({ type: "function_call" as const, callId: id, name: "deploy", status: "completed" as const, arguments: args })),
    };
  }
  async *getStreamedResponse(): AsyncGenerator<never> {
    throw new Error("not used");
  }
}

export const model = new OpenAIModel();
