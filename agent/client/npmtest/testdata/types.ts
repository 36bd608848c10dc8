// Checks that the adapters keep the types of a tool. The file is only compiled.

import { tool as openaiTool } from "@openai/agents";
import { tool as aiTool } from "ai";
import { Countersign } from "countersign-client";
import * as ai from "countersign-client/ai";
import * as openai from "countersign-client/openai";
import { z } from "zod";

const gate = new Countersign({ address: "https://gate.example.com", token: "cs_x" });
const parameters = z.object({ service: z.string() });

openaiTool(openai.gated(gate, { name: "deploy", description: "Deploys", parameters, execute: ({ service }) => service.trim() }));
// @ts-expect-error: the parameter is a string
openaiTool(openai.gated(gate, { name: "deploy", description: "Deploys", parameters, execute: ({ service }) => service * 2 }));
openaiTool(openai.gated(gate, { name: "json", description: "Has a JSON schema", strict: false, parameters: { type: "object", properties: {}, required: [], additionalProperties: true }, execute: () => 1 }));

const { deploy } = ai.gated(gate, { deploy: aiTool({ description: "Deploys", inputSchema: parameters, execute: async ({ service }) => service.trim() }) });
deploy.execute?.({ service: "shop" }, { toolCallId: "call_1", messages: [], context: {} });
// @ts-expect-error: the parameter is a string
deploy.execute?.({ service: 7 }, { toolCallId: "call_1", messages: [], context: {} });
