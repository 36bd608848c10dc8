package workspace

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"countersign/internal/demo/workspace/delivery"
)

// The faults that can be switched on. Each is used up after Times uses.
const (
	// FaultRateLimited answers 429 with Retry-After and does nothing.
	FaultRateLimited = "rate_limited"
	// FaultServerError answers with Status (500) and does nothing.
	FaultServerError = "server_error"
	// FaultError answers ok:false with Error and does nothing.
	FaultError = "error"
	// FaultLostResponse does the method's work and breaks the connection.
	FaultLostResponse = "lost_response"
	// FaultLostRequest breaks the connection before any work.
	FaultLostRequest = "lost_request"
	// FaultSlow answers after DelayMS.
	FaultSlow = "slow"
	// FaultLostEphemeral accepts an ephemeral message that nobody is ever shown.
	FaultLostEphemeral = "lost_ephemeral"

	// FaultDuplicateDelivery sends an envelope's payload twice.
	FaultDuplicateDelivery = "duplicate_delivery"
	// FaultLateDelivery sends an envelope after DelayMS.
	FaultLateDelivery = "late_delivery"
	// FaultLostDelivery sends the first attempt of an envelope nowhere.
	FaultLostDelivery = "lost_delivery"
	// FaultLostAck doesn't hear an acknowledgement.
	FaultLostAck = "lost_ack"
)

var (
	callFaults     = []string{FaultRateLimited, FaultServerError, FaultError, FaultLostResponse, FaultLostRequest, FaultSlow, FaultLostEphemeral}
	deliveryFaults = []string{FaultDuplicateDelivery, FaultLateDelivery, FaultLostDelivery}
)

// Fault is something that goes wrong the next Times times.
type Fault struct {
	Fault string `json:"fault"`
	// Method is the Web API method a call fault is for; empty is any.
	Method string `json:"method,omitempty"`
	// Type is the kind of envelope a delivery fault is for (events_api, interactive,
	// slash_commands); empty is any.
	Type string `json:"type,omitempty"`
	// Times is how often it happens; 0 means once.
	Times int `json:"times,omitempty"`
	// RetryAfter is in seconds; 0 means 1.
	RetryAfter int `json:"retry_after,omitempty"`
	// Status is the HTTP status of a server error; 0 means 500.
	Status int `json:"status,omitempty"`
	// Error is the code of FaultError, such as edit_window_closed.
	Error string `json:"error,omitempty"`
	// DelayMS is for slow and late ones, in milliseconds.
	DelayMS int `json:"delay_ms,omitempty"`
}

func (f Fault) delay() time.Duration { return time.Duration(f.DelayMS) * time.Millisecond }

func (f Fault) validate() error {
	known := slices.Contains(callFaults, f.Fault) || slices.Contains(deliveryFaults, f.Fault) || f.Fault == FaultLostAck
	switch {
	case !known:
		return fmt.Errorf("there is no fault %q", f.Fault)
	case f.Fault == FaultError && f.Error == "":
		return fmt.Errorf("the fault error needs the code to answer in \"error\"")
	case f.Method != "" && methods[f.Method].run == nil:
		return fmt.Errorf("there is no method %q", f.Method)
	case f.Times < 0 || f.DelayMS < 0 || f.RetryAfter < 0:
		return fmt.Errorf("times, delay_ms and retry_after cannot be negative")
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("status must be between 400 and 599")
	}
	return nil
}

// faults is what will go wrong, in the order in which it was asked for.
type faults struct {
	mu   sync.Mutex
	list []*Fault
}

func newFaults() *faults { return &faults{} }

func (f *faults) add(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault.Times = max(fault.Times, 1)
	f.list = append(f.list, &fault)
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

func (f *faults) pending() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Fault, len(f.list))
	for i, fault := range f.list {
		out[i] = *fault
	}
	return out
}

// use takes one use of the first fault that fits.
func (f *faults) use(fits func(*Fault) bool) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, fault := range f.list {
		if !fits(fault) {
			continue
		}
		if fault.Times--; fault.Times == 0 {
			f.list = slices.Delete(f.list, i, i+1)
		}
		return *fault, true
	}
	return Fault{}, false
}

func (f *faults) take(method string) (Fault, bool) {
	return f.use(func(x *Fault) bool {
		return slices.Contains(callFaults, x.Fault) && (x.Method == "" || x.Method == method) &&
			(x.Fault != FaultLostEphemeral || method == "chat.postEphemeral")
	})
}

// Delivery and LostAck are delivery.Faults.

func (f *faults) Delivery(kind string) delivery.Fault {
	fault, ok := f.use(func(x *Fault) bool {
		return slices.Contains(deliveryFaults, x.Fault) && (x.Type == "" || x.Type == kind)
	})
	switch {
	case !ok:
		return delivery.Fault{}
	case fault.Fault == FaultLateDelivery:
		return delivery.Fault{Late: fault.delay()}
	}
	return delivery.Fault{Lost: fault.Fault == FaultLostDelivery, Twice: fault.Fault == FaultDuplicateDelivery}
}

func (f *faults) LostAck() bool {
	_, lost := f.use(func(x *Fault) bool { return x.Fault == FaultLostAck })
	return lost
}

// failBefore applies the faults that come before a method's work; it reports whether
// the call is answered with that.
func (f *faults) failBefore(w http.ResponseWriter, r *http.Request, fault Fault) bool {
	switch fault.Fault {
	case FaultRateLimited:
		w.Header().Set("Retry-After", strconv.Itoa(max(fault.RetryAfter, 1)))
		writeJSON(w, http.StatusTooManyRequests, object{"ok": false, "error": "ratelimited"})
		return true
	case FaultServerError:
		status := fault.Status
		if status == 0 {
			status = http.StatusInternalServerError
		}
		http.Error(w, http.StatusText(status), status)
		return true
	case FaultLostRequest:
		panic(http.ErrAbortHandler)
	case FaultSlow:
		timer := time.NewTimer(fault.delay())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return true
		}
	}
	return false
}
