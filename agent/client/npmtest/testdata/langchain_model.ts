import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";

import { heard, next } from "./script.js";

const build = process.env.BUILD!;

class LangChainModel extends BaseChatModel {
  _llmType() { return "scripted"; }
  bindTools() { return this; }
  async _generate(messages: BaseMessage[]) {
    const results = messages.filter((m) => m.type === "tool").map((m) => m.text);
    const calls = next(messages.flatMap((m) => (AIMessage.isInstance(m) ? m.tool_calls ?? [] : [])).map((call) => call.id));
    const message = calls.length
      ? new AIMessage({ content: "", tool_calls: calls.map(({ id, args }) => ({ type: "tool_call", id, name: "deploy", args: JSON.parse(args) })) })
      : new AIMessage(heard(results));
    return { generations: [{ text: message.text, message }] };
  }
}

export const model = new LangChainModel({});

/** A checkpointer that keeps its checkpoints in a file. */
class FileSaver extends MemorySaver {
  #file = `${build}.checkpoints`;
  constructor() {
    super();
    const revive = (_: string, v: any) => (v?.bytes ? new Uint8Array(v.bytes) : v);
    if (existsSync(this.#file)) Object.assign(this, JSON.parse(readFileSync(this.#file, "utf8"), revive));
  }
  #keep() {
    const bytes = (_: string, v: any) => (v instanceof Uint8Array ? { bytes: [...v] } : v);
    writeFileSync(this.#file, JSON.stringify({ storage: this.storage, writes: this.writes }, bytes));
    writeFileSync(`${build}.state`, "in the checkpointer");
  }
  override async put(...args: Parameters<MemorySaver["put"]>) {
    const config = await super.put(...args);
    this.#keep();
    return config;
  }
  override async putWrites(...args: Parameters<MemorySaver["putWrites"]>) {
    await super.putWrites(...args);
    this.#keep();
  }
}

export const checkpointer = new FileSaver();
