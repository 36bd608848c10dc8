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

// The faults that can be switched on. Each fault occurs as often as its field Times says.
const (
	// FaultRateLimited answers with status 429 and Retry-After, without running the method.
	FaultRateLimited = "rate_limited"
	// FaultServerError answers with Status (default 500), without running the method.
	FaultServerError = "server_error"
	// FaultError answers ok:false with Error, without running the method.
	FaultError = "error"
	// FaultLostResponse runs the method, and then breaks the connection.
	FaultLostResponse = "lost_response"
	// FaultLostRequest breaks the connection without running the method.
	FaultLostRequest = "lost_request"
	// FaultSlow delays the answer by DelayMS.
	FaultSlow = "slow"
	// FaultLostEphemeral accepts an ephemeral message but does not show it.
	FaultLostEphemeral = "lost_ephemeral"

	// FaultDuplicateDelivery sends an envelope's payload twice.
	FaultDuplicateDelivery = "duplicate_delivery"
	// FaultLateDelivery delays an envelope by DelayMS.
	FaultLateDelivery = "late_delivery"
	// FaultLostDelivery loses the first attempt of a delivery.
	FaultLostDelivery = "lost_delivery"
	// FaultLostAck loses an acknowledgement.
	FaultLostAck = "lost_ack"
)

var (
	callFaults     = []string{FaultRateLimited, FaultServerError, FaultError, FaultLostResponse, FaultLostRequest, FaultSlow, FaultLostEphemeral}
	deliveryFaults = []string{FaultDuplicateDelivery, FaultLateDelivery, FaultLostDelivery}
)

// Fault is a fault that occurs a number of times (see Times).
type Fault struct {
	Fault string `json:"fault"`
	// Method is the Web API method to which a fault of calls applies. If Method is empty, the fault applies to any
	// method.
	Method string `json:"method,omitempty"`
	// Type is the kind of envelope to which a fault of deliveries applies: events_api, interactive or slash_commands.
	// If Type is empty, the fault applies to any kind.
	Type string `json:"type,omitempty"`
	// Times is how often the fault occurs. 0 means once.
	Times int `json:"times,omitempty"`
	// RetryAfter is a number of seconds. 0 means 1 second.
	RetryAfter int `json:"retry_after,omitempty"`
	// Status is the HTTP status of a server error. 0 means status 500.
	Status int `json:"status,omitempty"`
	// Error is the code of FaultError, such as edit_window_closed.
	Error string `json:"error,omitempty"`
	// DelayMS is the delay of slow calls and late deliveries, in milliseconds.
	DelayMS int `json:"delay_ms,omitempty"`
}

func (f Fault) delay() time.Duration { return time.Duration(f.DelayMS) * time.Millisecond }

// validate returns the first error in a fault. methods are the Web API methods by name.
func (f Fault) validate(methods map[string]method) error {
	known := slices.Contains(callFaults, f.Fault) || slices.Contains(deliveryFaults, f.Fault) || f.Fault == FaultLostAck
	switch {
	case !known:
		return fmt.Errorf("there is no fault %q", f.Fault)
	case f.Fault == FaultError && f.Error == "":
		return fmt.Errorf("the fault \"error\" needs the field \"error\": the error code that the workspace returns")
	case f.Method != "" && methods[f.Method].run == nil:
		return fmt.Errorf("there is no method %q", f.Method)
	case f.Times < 0 || f.DelayMS < 0 || f.RetryAfter < 0:
		return fmt.Errorf("times, delay_ms and retry_after cannot be negative")
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("status must be between 400 and 599")
	}
	return nil
}

// faults holds the faults that are switched on, in the order in which they were requested.
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

// use returns the first matching fault, and counts its use.
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

// Delivery and LostAck implement delivery.Faults.

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

// failBefore applies a fault that occurs before the method runs. If failBefore has answered the call, failBefore
// returns true.
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
