package bot

import (
	"context"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/slackapi"
	"countersign/store"
)

// rankPriority maps the rank of an outbox message to the priority of its calls.
var rankPriority = map[store.Rank]slackapi.Priority{
	store.RankFirst: slackapi.PriorityFirst, store.RankPlain: slackapi.PriorityNormal, store.RankAnswer: slackapi.PriorityReply, store.RankLast: slackapi.PriorityLast,
}

// dueFor sets the priority of the calls for a due timer.
func dueFor(ctx context.Context, p slackapi.Priority, t store.Timer) context.Context {
	return slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: p, Retry: t.Tries > 0})
}

// toShow sets the priority of the calls that show an outbox message.
func toShow(ctx context.Context, s workflow.ViewModel, t store.Timer) context.Context {
	e := slackapi.CallPriority{Priority: rankPriority[s.Message.Rank], Retry: t.Tries > 0}
	if s.Message.Kind == store.OutboxStep && !s.Message.Drafted {
		open := s.Turn.State == approvers.TurnWaiting && s.Turn.Step == s.Message.Step
		e.WillChange = open && s.Message.TS == ""
		e.UsesReserved = !open && s.Message.TS != ""
		if open && s.Message.TS != "" {
			e.Priority = max(e.Priority, slackapi.PriorityTransient)
		}
	}
	e.UsesReserved = e.UsesReserved || s.Message.Drafted
	return slackapi.WithCallPriority(ctx, e)
}
