// Package hook answers the hooks of coding agents: it asks the gateway about a tool call in the mode decide, and says the
// decision in the agent's own words.
//
// The agent starts a process for each event, and writes JSON to its input. [Run] handles one event. dialect.go lists the
// agents; claude.go (with Codex, whose hooks have the same form), gemini.go, copilot.go and cursor.go read what an agent
// writes, and write what it reads. run.go asks and reports; args.go joins the call's arguments and its working folder;
// state.go remembers requests between processes; config.go reads the configuration. Package setup installs hooks.
//
// There are two profiles, and they are never mixed:
//
//   - control: an event before each tool call is answered, and other people decide. Whatever fails, the call is denied.
//   - comfort: an event of the agent's own permission dialog is answered, and the person at the agent decides on their
//     phone. Whatever fails, the dialog asks.
//
// It promises:
//
//   - A call is allowed only after the gateway has confirmed the claim of its approval, for exactly the bytes of its
//     arguments and for its working folder.
//   - Nothing else than an allowed call gets an answer that lets it run; a panic ends the process with the exit code that
//     agents take as a denial.
//   - An answer is given before the agent's own time limit, after which most agents would run the call.
//   - A call that was denied because nobody had decided yet continues its request when it is repeated.
package hook
