// The program without an SDK has no model.

export const model = undefined;
export const checkpointer = undefined;
