// The scripted models call deploy with these arguments, and then repeat what they read.

export const calls = JSON.parse(process.env.CALLS!) as string[];
export const id = (n: number) => `call_${n}`;
export const heard = (texts: string[]) => `heard: ${texts.join(" | ")}`;
