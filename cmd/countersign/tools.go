package main

import (
	"context"
	"fmt"

	"countersign/agent"
	"countersign/approvers"
	"countersign/internal/shop"
)

// effects names the sample shop's protection levels in the domain's words.
var effects = map[string]approvers.Effect{
	shop.EffectRead:        approvers.ReadOnly,
	shop.EffectIdempotent:  approvers.Idempotent,
	shop.EffectUnprotected: approvers.Unprotected,
}

// registry holds every tool that can be called. Tools of your own are registered here. What stands between the bot and the shop may change each of the shop's.
func registry(s *shop.Shop, between ...func(*shop.Tool)) (*agent.Registry, error) {
	r := &agent.Registry{}
	for _, t := range s.Tools() {
		for _, change := range between {
			change(&t)
		}
		err := r.Register(agent.Tool{
			Name: t.Name, Description: t.Description, Schema: t.Schema, Effect: effects[t.Effect],
			Run: func(ctx context.Context, in agent.Invocation) (string, error) {
				result, err := t.Run(ctx, in.Key, in.Args)
				return string(result), err
			},
		})
		if err != nil {
			return nil, fmt.Errorf("sample shop: %w", err)
		}
	}
	for _, t := range agent.BuiltIns() {
		if err := r.Register(t); err != nil {
			return nil, fmt.Errorf("built-in tools: %w", err)
		}
	}
	return r, nil
}
