package demomodel

import "strings"

// turn is a sequence of messages from people, the calls that followed, and the answer.
type turn struct {
	said   string
	done   []done
	answer string
}

// done is a call with its result. If the call has no result yet, answered is false.
type done struct {
	Call
	args     object
	result   result
	answered bool
}

func split(history []Message) []turn {
	var turns []turn
	byID := map[string][2]int{} // by call id: the index of the turn, and the index of the call in this turn
	for _, m := range history {
		switch m.Role {
		case "user":
			text := clean(m.Content)
			if n := len(turns); n > 0 && len(turns[n-1].done) == 0 && turns[n-1].answer == "" {
				turns[n-1].said = strings.TrimSpace(turns[n-1].said + "\n" + text)
				continue
			}
			turns = append(turns, turn{said: text})
		case "assistant":
			if len(turns) == 0 {
				continue // the beginning of the conversation was truncated
			}
			t := &turns[len(turns)-1]
			for _, call := range m.Calls {
				byID[call.ID] = [2]int{len(turns) - 1, len(t.done)}
				t.done = append(t.done, done{Call: call, args: parseObject(call.Arguments)})
			}
			if len(m.Calls) == 0 {
				t.answer = m.Content
			}
		case "tool":
			if at, ok := byID[m.CallID]; ok {
				c := &turns[at[0]].done[at[1]]
				c.result, c.answered = parseResult(m.Content), true
			}
		}
	}
	return turns
}
