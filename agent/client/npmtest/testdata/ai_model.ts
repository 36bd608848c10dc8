import { MockLanguageModelV4 } from "ai/test";

import { heard, next } from "./script.js";

export const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const results = prompt.flatMap((m) => (m.role === "tool" ? m.content : [])).flatMap((p) => (p.type === "tool-result" ? [p.output] : []))
      .map((o) => ("value" in o ? (typeof o.value === "string" ? o.value : JSON.stringify(o.value)) : (o.type === "execution-denied" && o.reason) || o.type));
    const calls = next(prompt.flatMap((m) => (m.role === "assistant" ? m.content : [])).map((p) => (p.type === "tool-call" ? p.toolCallId : undefined)));
    const total = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 };
    return {
      finishReason: { unified: calls.length ? "tool-calls" : "stop", raw: undefined },
      usage: { inputTokens: total, outputTokens: { total: 1, text: 1, reasoning: 0 } },
      warnings: [],
      content: calls.length ? calls.map(({ id, args }) => ({ type: "tool-call", toolCallId: id, toolName: "deploy", input: args })) : [{ type: "text", text: heard(results) }],
    };
  },
});
