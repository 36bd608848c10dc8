// The scripted models make the calls of each step, and then repeat what they read.

const steps = JSON.parse(process.env.CALLS!) as string[][];

/** Returns the calls of the next step. made has the ids of the calls so far. After the last step, there are no calls. */
export function next(made: (string | undefined)[]): { id: string; args: string }[] {
  let n = 0;
  const all = steps.map((step) => step.map((args) => ({ id: `call_${n++}`, args })));
  return all.find((step) => !step.every((call) => made.includes(call.id))) ?? [];
}

export const heard = (texts: string[]) => `heard: ${texts.join(" | ")}`;
