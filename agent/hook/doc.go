// Package hook implements the hooks of coding agents. A hook sends a tool call to the gateway as a request in the
// mode decide. The hook writes the decision in the agent's format.
//
// The agent starts a process for each event, and writes JSON to the standard input of the process. [Run] handles one
// event. dialect.go lists the agents. claude.go (for Claude Code and Codex), gemini.go, copilot.go and cursor.go read
// the events of the agents, and write the answers. run.go sends requests to the gateway and reports outcomes.
// question.go lets the agent answer an approver's question. args.go adds the working folder to a call's arguments.
// state.go keeps requests between processes. config.go reads the configuration. Package setup installs hooks.
//
// Claude Code can also send its events to the gateway over HTTP. The gateway calls [Serve] (http.go), which handles
// events as Run does, and finds requests at the gateway instead of in files.
//
// There are two profiles. A machine uses one of them:
//
//   - control: the hook answers an event before each tool call, and other people decide. If anything fails, the call is
//     denied.
//   - comfort: the hook answers an event of the agent's own permission dialog, and the agent's user decides on their
//     phone. If anything fails, the agent's dialog asks the user.
//
// The package promises:
//
//   - A call is allowed only after the gateway has confirmed the claim of the call's approval. The approval is for
//     exactly the bytes of the arguments and for the working folder.
//   - Any other call is denied, or the agent's own dialog decides (in the profile comfort). If the process panics, it
//     ends with the exit code that agents take as a denial.
//   - The hook sends an agent's answer to a question without asking people, and denies the shell call that contains the
//     answer. So this shell call never runs.
//   - The hook answers before the agent's own time limit. After this limit, most agents would run the call.
//   - If a call was denied because nobody had decided yet, a repetition of the call continues the same request.
package hook
