import { MockLanguageModelV4 } from "ai/test";

import { calls, heard, id } from "./script.js";

export const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const results = prompt.flatMap((m) => (m.role === "tool" ? m.content : [])).flatMap((p) => (p.type === "tool-result" ? [p.output] : []))
      .map((o) => ("value" in o ? (typeof o.value === "string" ? o.value : JSON.stringify(o.value)) : (o.type === "execution-denied" && o.reason) || o.type));
    const total = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 };
    return {
      finishReason: { unified: results.length ? "stop" : "tool-calls", raw: undefined },
      usage: { inputTokens: total, outputTokens: { total: 1, text: 1, reasoning: 0 } },
      warnings: [],
      content: results.length ? [{ type: "text", text: heard(results) }] : calls.map((input, n) => ({ type: "tool-call", toolCallId: id(n), toolName: "deploy", input })),
    };
  },
});
