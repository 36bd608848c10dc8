package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/agent"
	"countersign/approvers"
)

// shipping is the tool's data. The map sent has the tracking number of each sent order, by execution id.
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

// ShipArgs are the arguments that the model writes. The tags become the JSON Schema.
type ShipArgs struct {
	OrderID string        `json:"order_id" pattern:"^ORD-[0-9]+$" doc:"Order number, such as ORD-123"`
	Insured agent.Decimal `json:"insured" above:"0" max:"5000" places:"2" doc:"Value to insure, in US dollars"`
	Speed   string        `json:"speed,omitempty" enum:"standard,express" doc:"standard where it is left out"`
	After   *time.Time    `json:"after" doc:"Not before this moment"`
}

// Shipped is the result for the model.
type Shipped struct {
	Tracking string `json:"tracking"`
}

// ship returns the tool. The tool does not say who must approve a call: the policy does.
func ship(warehouse *shipping) agent.Tool {
	tool := agent.Func("ship_order", "Ship an order that is paid. Returns the tracking number.", approvers.Idempotent,
		func(ctx context.Context, in agent.Invocation, args ShipArgs) (Shipped, error) {
			tracking, err := warehouse.send(ctx, in.Key, args.OrderID) // a second run with the same key ships nothing
			return Shipped{Tracking: tracking}, err
		})
	tool.Timeout = 10 * time.Second
	tool.Preview = agent.Typed(func(_ context.Context, _ agent.Invocation, args ShipArgs) (string, error) {
		return fmt.Sprintf("Ship %s, insured for $%s", args.OrderID, args.Insured), nil
	})
	return tool
}

// Func creates a tool from a Go function. The schema of the arguments is derived from a struct. Arguments that don't
// fit the struct are refused before a person is asked for approval.
func ExampleFunc() {
	var tools agent.Registry
	if err := tools.Register(ship(&shipping{sent: map[string]string{}})); err != nil {
		fmt.Println(err)
		return
	}
	tool, _ := tools.Tool("ship_order")
	fmt.Println(tool.Check(json.RawMessage(`{"order_id": "ORD-123", "insured": 49.90}`)))
	fmt.Println(tool.Check(json.RawMessage(`{"order_id": "123", "insured": 49.999, "Speed": "express"}`)))
	// Output:
	// <nil>
	// Speed: is not known; the fields are after, insured, order_id, speed; insured: must be a multiple of 0.01; order_id: must match the pattern ^ORD-[0-9]+$
}

// A tool with a handwritten schema is a Tool with a Run function.
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
		Effect: approvers.Idempotent,
		Run: agent.Typed(func(ctx context.Context, in agent.Invocation, args struct {
			OrderID string `json:"order_id"`
		},
		) (Shipped, error) {
			tracking, err := warehouse.send(ctx, in.Key, args.OrderID)
			return Shipped{Tracking: tracking}, err
		}),
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
