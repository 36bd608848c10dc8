// What a user of the client has already: a model, a tool, and a place for the state of a run.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";

import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { z } from "zod";

/** The scenario is the id of the run. */
export const build = process.env.BUILD!;

export const parameters = z.object({ service: z.string(), version: z.string() });

export async function deploy(args: { service: string; version: string }): Promise<string> {
  appendFileSync(`${build}.ran`, JSON.stringify(args) + "\n");
  if (args.service === "broken") throw new Error("the service is broken");
  if (args.service === "slow") await new Promise((done) => setTimeout(done, 600_000));
  return `deployed ${args.service} ${args.version}`;
}

/** Answers an approver's question. */
export const ask = (question: string) => `The agent was asked: ${question}`;

export async function save(state: string): Promise<void> {
  writeFileSync(`${build}.state`, state);
}

export async function load(): Promise<string | undefined> {
  return existsSync(`${build}.state`) ? readFileSync(`${build}.state`, "utf8") : undefined;
}

/** The model of the SDK, and for LangChain a checkpointer. */
export const { model, checkpointer }: { model: any; checkpointer: BaseCheckpointSaver } = await import(`./${process.env.SDK}_model.js`);
