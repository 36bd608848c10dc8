package main

import (
	"net"

	"countersign/internal/workspace"
)

// doorway is where the demo's bot takes the workspace's requests over HTTP. A bot that follows another listens at the same address.
type doorway struct {
	addr  string
	first net.Listener // until somebody takes it
}

func openDoorway() (*doorway, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, couldNot("the demo's bot can't listen for the workspace's requests: %w", err)
	}
	return &doorway{addr: l.Addr().String(), first: l}, nil
}

func (d *doorway) listen() (net.Listener, error) {
	if l := d.first; l != nil {
		d.first = nil
		return l, nil
	}
	return net.Listen("tcp", d.addr)
}

func (d *doorway) close() {
	if d != nil && d.first != nil {
		d.first.Close()
	}
}

// urls are what the workspace is told of it.
func (d *doorway) urls() workspace.RequestURLs {
	return workspace.URLsAt("http://" + d.addr + "/slack/")
}
