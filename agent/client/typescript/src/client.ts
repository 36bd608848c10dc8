// A client of Countersign's gateway for programs that run their tools themselves. It has no dependencies.
//
// The client makes the promises of the Go client. It sends arguments byte for byte, and compares their hash before a
// claim. It repeats a claim only if the claim did not reach the gateway. The token never appears in an error. The
// client sends the token only to the gateway's host.

/** A kind of decision that the caller can handle. */
export type Accepts = "approve" | "edit" | "reject";

export interface Options {
  /** The gateway's base URL. Without HTTPS, the gateway must be on this machine. */
  address: string;
  token: string;
  /** Distinguishes the runs of an agent. It is needed if two runs use the same id for a call, such as "call_1". */
  run?: string;
  accepts?: Accepts[];
  /** The Slack user for whom the caller acts. This person then can't decide, and gets no rights. */
  onBehalfOf?: string;
  /** The reason for the calls, which approvers read. It must be the same after a restart of the program. */
  summary?: string;
  /** Is told that a call waits for people, once for each wait. With the request's id, the program can withdraw it. */
  onPending?: (request: Request, call: Call) => void;
  /** Answers an approver's question. Without an answer, the call continues to wait. */
  answer?: (question: string, call: Call) => string | undefined | Promise<string | undefined>;
  /** For how many milliseconds the client repeats a request while the gateway can't be reached. */
  patience?: number;
}

/** A tool call. The same id with the same arguments is the same call, also after a restart of the program. */
export interface Call {
  id: string;
  tool: string;
  /** A JSON object. */
  args: string;
  /** The reason for the call, instead of the option summary. */
  summary?: string;
}

export type Status =
  | "pending" | "approved" | "running" | "succeeded" | "failed" | "unknown"
  | "rejected" | "expired" | "withdrawn" | "revoked" | "voided" | "refused" | "observed";

/** The gateway's record of a call. The other fields are in its OpenAPI description. */
export interface Request {
  id: string;
  status: Status;
  args_sha256: string;
  /** While pending: the roles that may decide, and the time at which the request expires. */
  waits_for?: string[];
  expires_at?: string;
  decision?: { type: Accepts; args_json?: string; by: { role: string }[]; reason?: string };
  reason?: string;
  receipt?: string;
  /** The id of the run. It changes with an edit, and if people ask for the call again. */
  run?: string;
  result?: string;
  disposition?: "approved-executed" | "denied-not-executed" | "execution-error" | "outcome-unknown";
  questions?: { question: number; text: string; by: string; answer?: string }[];
}

/** The error of a call that must not run. The message is a sentence for the model. */
export class Refusal extends Error {
  readonly status: Status;
  readonly request?: string;
  constructor(message: string, status: Status, request?: string) {
    super(message);
    this.name = "Refusal";
    this.status = status;
    this.request = request;
  }
}

/** The gateway's refusal of an HTTP request (RFC 9457). */
export class Problem extends Error {
  /** The last part of the problem's type, such as "key_reused", or "" if the problem is not from the gateway. */
  readonly problem: string;
  readonly status: number;
  readonly retryAfter: number;
  /** The id and the status of the request that the problem is about. */
  readonly request?: string;
  readonly requestStatus?: Status;
  constructor(status: number, problem: string, text: string, retryAfter: number, request?: string, requestStatus?: Status) {
    super(problem ? `the gateway refused (${problem}): ${text}` : `the gateway, or something before it, answered ${status} ${text}`);
    this.name = "Problem";
    this.status = status;
    this.problem = problem;
    this.retryAfter = retryAfter;
    this.request = request;
    this.requestStatus = requestStatus;
  }
}

const longestWait = 55; // seconds; the gateway's limit of one long poll
const longestText = 65536;
const longestReason = 3000;
const prefix = "urn:countersign:problem:";

/** The problems with which the gateway says that it did nothing, and that the client may repeat the request. */
const repeatable = new Set(["key_in_flight", "too_many_waiting", "too_many_requests"]);

/** The problems with which the policy refuses the call. */
const refusals = new Set(["refused", "tool_not_allowed", "tool_blocked", "invalid_arguments", "budget_used_up", "too_many_pending"]);

export class Countersign {
  /** The tools that an adapter has wrapped. */
  readonly tools = new Set<string>();
  #address: string;
  #options: Options;

  constructor(options: Options) {
    const url = new URL(options.address);
    const here = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
    if (url.protocol !== "https:" && !(url.protocol === "http:" && here)) {
      throw new Error("the gateway's address must begin with https, because the token is sent there");
    }
    if (url.username || url.search || url.hash) throw new Error("the gateway's address has a user, a query or a fragment");
    if (!/^[!-~]+$/.test(options.token)) throw new Error("the token is empty, or has characters that no token has");
    this.#address = options.address.replace(/\/+$/, "");
    this.#options = options;
  }

  /**
   * Waits until the call is decided, and returns the request. A restarted program can wait for the same call. The end
   * of the wait by the signal does not withdraw the request.
   */
  async decided(call: Call, signal?: AbortSignal): Promise<Request> {
    const { run, accepts = ["approve", "edit", "reject"], onBehalfOf } = this.#options;
    const args = object(call.args);
    const summary = call.summary ?? this.#options.summary;
    const rest = JSON.stringify({ mode: "decide", tool: call.tool, accepts, on_behalf_of: onBehalfOf, summary: summary && cut(summary, longestReason) });
    const key = run ? `${run}:${call.id}` : call.id;
    if (!/^[ -~]{1,255}$/.test(key)) throw new Error(`the gateway takes no such id of a call: ${JSON.stringify(key)}`);
    let request = await this.#send("POST", "/v1/requests", { body: `${rest.slice(0, -1)},"args":${args}}`, key, repeat: true, signal });
    if (request.body.status === "pending") this.#options.onPending?.(request.body, call);
    const answered = new Set<number>();
    while (request.body.status === "pending") {
      for (const q of request.body.questions ?? []) {
        if (q.answer || answered.has(q.question)) continue;
        answered.add(q.question);
        const text = await this.#options.answer?.(q.text, call);
        if (text) await this.#answer(request.body.id, q.question, text, signal);
      }
      request = await this.#send("GET", `/v1/requests/${request.body.id}?wait=${longestWait}`, { etag: request.etag, last: request, repeat: true, signal });
    }
    return request.body;
  }

  /**
   * Waits until the call is approved, claims the approval, runs the tool with the approved arguments, and reports the
   * outcome. Throws a Refusal if the tool must not run. If the call ran in an earlier process that was stopped, returns
   * a sentence with the result of that run. If approvers changed the arguments, the result begins with a note about the
   * change.
   */
  async run<T>(call: Call, tool: (args: string, edited: boolean) => T | Promise<T>, options: RunOptions<T> = {}): Promise<T | string> {
    let request: Request;
    let args: string;
    try {
      do { // If the policy requires more approvals at the claim, the call waits again.
        request = await this.decided(call, options.signal);
        if (request.status === "succeeded") return sentence(request);
        if (request.status !== "approved") throw new Refusal(sentence(request), request.status, request.id);
        args = request.decision?.type === "edit" ? request.decision.args_json ?? "" : object(call.args);
        if ((await sha256(args)) !== request.args_sha256) throw new Error("the arguments do not match the hash that the gateway approved");
      } while (!(await this.#claim(request, options.signal)));
    } catch (err) {
      throw refusal(err);
    }
    const edit = request.decision?.type === "edit" ? request.decision : undefined;
    let out: T;
    try {
      out = await tool(args, edit !== undefined);
    } catch (err) {
      await this.#report(request, "failed", text(err instanceof Error ? err.message : err));
      throw err;
    }
    await this.#report(request, options.failed?.(out) ? "failed" : "succeeded", options.text ? options.text(out) : text(out));
    if (!edit) return out;
    const note = `An approver changed the arguments of the call to ${args}.${edit.reason ? ` The reason: ${edit.reason}` : ""}`;
    return (options.noted ?? noted)(out, note) as T;
  }

  /** Withdraws a request. The tool must not run afterwards. */
  async withdraw(request: string, reason: string): Promise<void> {
    await this.#act(request, "withdraw", { reason: cut(reason, longestReason) }, true);
  }

  /** Claims the approval. Returns false if the request waits for people again. */
  async #claim(request: Request, signal?: AbortSignal): Promise<boolean> {
    try {
      const claimed = await this.#act(request.id, "claim", { args_sha256: request.args_sha256 }, false, signal);
      if (claimed.id !== request.id || claimed.args_sha256 !== request.args_sha256) throw new Error("it is about another request");
      return true;
    } catch (err) {
      if (err instanceof Problem && err.problem === "not_approved" && err.requestStatus === "pending") return false;
      // With the problem "unavailable", the gateway may have stored the claim.
      if ((err instanceof Problem && err.problem && err.problem !== "unavailable") || notSent(err)) throw err;
      await this.#report(request, "failed", "The tool did not run, because the response to the claim was lost.");
      throw new Error("the response to the claim was lost, so the tool did not run", { cause: err });
    }
  }

  /** Answers an approver's question. If the question is over, the answer is dropped. */
  async #answer(id: string, question: number, text: string, signal?: AbortSignal): Promise<void> {
    try {
      await this.#act(id, "answer", { question, text: cut(text, longestReason) }, true, signal);
    } catch (err) {
      if (!(err instanceof Problem && err.problem === "no_question")) throw err;
    }
  }

  /** Reports the outcome. If the report fails, the call keeps its result, and people are asked what happened. */
  async #report({ id, run }: Request, status: "succeeded" | "failed", result: string): Promise<void> {
    const report = { status, text: result ? cut(result, longestText) : undefined };
    try {
      await this.#act(id, "outcome", { ...report, run }, true).catch((err) => {
        if (!run || !(err instanceof Problem && err.problem === "invalid_request")) throw err;
        return this.#act(id, "outcome", report, true); // a replica of an older version refuses run
      });
    } catch (err) {
      if (err instanceof Problem && err.problem === "not_claimed") return; // the gateway never received the claim
      console.warn(`countersign: the outcome of ${id} was not reported: ${text(err instanceof Error ? err.message : err)}`);
    }
  }

  async #act(id: string, action: string, body: unknown, repeat: boolean, signal?: AbortSignal): Promise<Request> {
    return (await this.#send("POST", `/v1/requests/${id}/${action}`, { body: JSON.stringify(body), repeat, signal })).body;
  }

  /** Sends a request. After a failure, repeats the request if the repetition can't have a second effect. */
  async #send(method: string, path: string, o: Exchange): Promise<Answer> {
    let end = 0;
    for (let pause = 200; ; pause = Math.min(2 * pause, 10_000)) {
      let after = pause * (1 + Math.random() / 2);
      try {
        return await this.#once(method, path, o);
      } catch (err) {
        end ||= Date.now() + (this.#options.patience ?? 60_000); // a long poll before the failure does not count
        let again = o.repeat || notSent(err);
        if (err instanceof Problem) {
          again = repeatable.has(err.problem) || (o.repeat && err.status >= 500 && err.problem !== "paused");
          after = Math.max(after, err.retryAfter * 1000);
        }
        if (!again || o.signal?.aborted || err instanceof WrongAnswer || Date.now() + after > end) throw err;
      }
      await pauseFor(after, o.signal);
    }
  }

  async #once(method: string, path: string, o: Exchange): Promise<Answer> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#options.token}`, accept: "application/json, application/problem+json" };
    if (o.body) headers["content-type"] = "application/json";
    if (o.key) headers["idempotency-key"] = o.key;
    if (o.etag) headers["if-none-match"] = o.etag;
    const limit = AbortSignal.timeout((method === "GET" ? longestWait + 15 : 30) * 1000);
    const signal = o.signal ? AbortSignal.any([o.signal, limit]) : limit;
    const res = await fetch(this.#address + path, { method, headers, body: o.body, redirect: "manual", signal });
    if (res.status === 304 && o.last) return o.last;
    const kind = res.headers.get("content-type")?.split(";")[0];
    const raw = await res.text();
    if (res.status !== 200 && res.status !== 202) {
      const p = (kind === "application/problem+json" ? parse(raw) : {}) as { type?: string; title?: string; detail?: string; id?: string; request_status?: Status };
      const problem = p.type?.startsWith(prefix) ? p.type.slice(prefix.length) : "";
      throw new Problem(res.status, problem, p.detail || p.title || res.statusText, Number(res.headers.get("retry-after")) || 0, p.id, p.request_status);
    }
    const body = (kind === "application/json" ? parse(raw) : {}) as Partial<Request>;
    if (!body.id || !body.status || !body.args_sha256) throw new WrongAnswer("the response is not a request; is this the URL of a gateway?");
    return { body: body as Request, etag: res.headers.get("etag") ?? "" };
  }
}

export interface RunOptions<T> {
  signal?: AbortSignal;
  /** Reports whether a result is an error. */
  failed?: (out: T) => boolean;
  /** The result as people read it. */
  text?: (out: T) => string;
  /** Adds a note for the model to a result. */
  noted?: (out: T, note: string) => T;
}

interface Exchange {
  body?: string;
  key?: string;
  etag?: string;
  /** The answer to return if the gateway says that the request has not changed (304). */
  last?: Answer;
  /** Whether the exchange can be repeated without a second effect. */
  repeat: boolean;
  signal?: AbortSignal;
}

interface Answer {
  body: Request;
  etag: string;
}

class WrongAnswer extends Error {}

/** Waits for some milliseconds, or until the signal. The next exchange then throws the signal's reason. */
function pauseFor(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const over = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", over);
      done();
    };
    const timer = setTimeout(over, ms);
    signal?.addEventListener("abort", over);
  });
}

function parse(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch {
    throw new WrongAnswer("the gateway's response is not valid JSON");
  }
}

function notSent(err: unknown): boolean {
  const cause = err instanceof TypeError ? (err.cause as { code?: string } | undefined) : undefined;
  return ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"].includes(cause?.code ?? "");
}

/** Converts a Problem that means that the call must not run into a Refusal. Returns other errors unchanged. */
export function refusal(err: unknown): unknown {
  if (!(err instanceof Problem)) return err;
  const refused = (text: string, status: Status) => new Refusal(text, err.requestStatus ?? status, err.request);
  if (refusals.has(err.problem)) return refused(`The call did not run: ${err.message}`, "refused");
  if (err.problem === "already_claimed") return refused(uncertain, "unknown");
  if (err.problem === "not_approved") return refused("The call did not run, because its approval no longer holds.", "voided");
  if (err.problem === "paused") return refused("The call did not run, because people have paused all runs.", "approved");
  return err;
}

const uncertain = "The call may have run: its outcome is not known. People are asked what happened. Don't try it in another way.";

/** Returns a sentence for the model that says how a request ended. */
export function sentence(r: Request): string {
  const because = r.reason || r.decision?.reason;
  const why = because ? `: ${because}` : ".";
  switch (r.status) {
    case "succeeded":
      return `This call ran before, and was not made again. Its result: ${r.result ?? "(none)"}`;
    case "failed":
      if (r.disposition === "denied-not-executed") break;
      return `This call ran before and failed, and was not made again: ${r.result ?? "(no reason)"}`;
    case "running":
      return uncertain;
    case "unknown":
      if (r.decision) return uncertain;
      return `It is not known whether the call was decided, or ran${why}`; // the gateway has lost the records of the call
    case "rejected":
      return `The call was rejected by ${r.decision?.by[0]?.role ?? "an approver"}, and did not run${why}`;
    case "expired":
      return `The call expired, and did not run${why}`; // either nobody decided in time, or it was not claimed in time
    case "withdrawn":
      return `The call was withdrawn, and did not run${why}`;
    case "voided":
      if (r.disposition !== "outcome-unknown") break;
      return `It is not known whether the call was decided, or ran${why}`;
    case "observed":
      return `The call did not run, because the policy only observes calls to this tool${why}`;
  }
  return `The call did not run${why}`;
}

/** Reads changed arguments with the tool's schema, as the SDK reads the model's arguments. */
export async function read(schema: unknown, args: string): Promise<unknown> {
  const value: unknown = JSON.parse(args);
  const s = (typeof schema === "function" && !("~standard" in schema) ? schema() : schema) as Schema | undefined;
  const standard = await s?.["~standard"]?.validate(value);
  const own = standard ? undefined : await s?.validate?.(value);
  if (standard?.issues) throw new Error(`the changed arguments don't fit the tool: ${standard.issues.map((i) => i.message).join("; ")}`);
  if (own?.success === false) throw new Error("the changed arguments don't fit the tool", { cause: own.error });
  return standard ? standard.value : own ? own.value : value;
}

/** A Standard Schema, such as a schema of Zod, or a schema of the AI SDK. */
interface Schema {
  "~standard"?: { validate(v: unknown): Validated | Promise<Validated> };
  validate?(v: unknown): OwnValidated | PromiseLike<OwnValidated>;
}
type Validated = { value?: unknown; issues?: readonly { message: string }[] };
type OwnValidated = { success: boolean; value?: unknown; error?: unknown };

function noted(out: unknown, note: string): unknown {
  return typeof out === "string" ? `${note}\n${out}` : { note, result: out };
}

/** Removes white space around arguments. If the arguments are not a JSON object, the call must not run. */
function object(args: string): string {
  const trimmed = args.trim();
  try {
    if (trimmed.startsWith("{") && JSON.parse(trimmed)) return trimmed;
  } catch {
    // not JSON
  }
  throw new Refusal("The call did not run, because its arguments are not a JSON object.", "refused");
}

/** Returns a value as people read it. The tool has run, so this function must not throw if the value is not JSON. */
function text(out: unknown): string {
  if (typeof out === "string") return out;
  try {
    return JSON.stringify(out) ?? "";
  } catch { // such as an object that contains itself, or a BigInt
    return typeof out === "object" ? Object.prototype.toString.call(out) : String(out);
  }
}

/** Shortens a text for people. Replaces each half of a surrogate pair by U+FFFD, because the gateway refuses halves. */
function cut(s: string, most: number): string {
  const whole = s.replace(/\p{Surrogate}/gu, "\ufffd"); // with the flag u, the pattern does not match a pair
  const points = whole.length > most ? [...whole] : [];
  return points.length > most ? `${points.slice(0, most - 1).join("")}…` : whole;
}

async function sha256(s: string): Promise<string> {
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(s));
  return [...new Uint8Array(sum)].map((b) => b.toString(16).padStart(2, "0")).join("");
}
