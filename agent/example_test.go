package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/agent"
	"countersign/approvers"
)

// shipping is what the tool works with. The key is the execution's id: an order that was sent under it is not sent again.
type shipping struct{ sent map[string]string }

func (s *shipping) send(_ context.Context, key, order string) (tracking string, err error) {
	if tracking, done := s.sent[key]; done {
		return tracking, nil
	}
	if order != "ORD-123" {
		return "", fmt.Errorf("there is no order %s", order)
	}
	s.sent[key] = "TRK-1"
	return "TRK-1", nil
}

// A tool is a description for the model, a schema for its arguments, and a function. Who must allow a call is said by the policy.
func ExampleRegistry_Register() {
	warehouse := &shipping{sent: map[string]string{}}
	var tools agent.Registry
	err := tools.Register(agent.Tool{
		Name:        "ship_order",
		Description: "Ship an order that is paid. Returns the tracking number.",
		Schema: json.RawMessage(`{
			"type": "object",
			"properties": {
				"order_id": {"type": "string", "pattern": "^ORD-[0-9]+$", "description": "Order number, such as ORD-123"}
			},
			"required": ["order_id"]
		}`),
		Effect:  approvers.Idempotent, // the same key ships once
		Timeout: 10 * time.Second,
		Run: func(ctx context.Context, in agent.Invocation) (string, error) {
			var args struct {
				OrderID string `json:"order_id"`
			}
			if err := json.Unmarshal(in.Args, &args); err != nil {
				return "", err
			}
			tracking, err := warehouse.send(ctx, in.Key, args.OrderID)
			if err != nil {
				return "", err
			}
			result, err := json.Marshal(map[string]string{"tracking": tracking})
			return string(result), err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ship, _ := tools.Tool("ship_order")
	fmt.Println(ship.Check(json.RawMessage(`{"order_id": "ORD-123"}`)))
	fmt.Println(ship.Check(json.RawMessage(`{"order": "123"}`)))
	// Output:
	// <nil>
	// order: is not known; the fields are order_id; order_id: is missing
}
