package condition

import (
	"fmt"
	"regexp"
	"time"
	_ "time/tzdata" // conditions name time zones, even on machines without a time zone database

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"countersign/config/yamldoc"
)

// errZone says that a condition names an unknown time zone.
type errZone struct {
	name string
	id   int64 // the literal's ID in the expression
}

func (e errZone) Error() string {
	return fmt.Sprintf("there is no time zone %s", yamldoc.Quote(e.name))
}

// zones looks up a condition's time zones when the condition is compiled. Without this option, CEL would read a
// zone's file at each evaluation.
var zones = func() cel.ProgramOption {
	var out []*interpreter.RegexOptimization
	for _, function := range timeParts {
		out = append(out, &interpreter.RegexOptimization{Function: function, RegexIndex: 1, Factory: inZone})
	}
	return cel.OptimizeRegex(out...) // despite its name, OptimizeRegex works for any literal text in a condition
}()

// offset matches the offsets that CEL reads, up to a day.
var offset = regexp.MustCompile(`^[+-]?([01]?[0-9]|2[0-3]):[0-5]?[0-9]$`)

// inZone returns a call such as now.getHours("Europe/Berlin") with the zone looked up in advance. Offsets such as
// "+02:00" are left to CEL.
func inZone(call interpreter.InterpretableCall, name string) (interpreter.InterpretableCall, error) {
	if offset.MatchString(name) {
		return call, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || zone == time.Local { // rejected: "Local" differs between machines
		return nil, errZone{name, call.Args()[1].ID()}
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(values ...ref.Val) ref.Val {
		at, ok := values[0].(types.Timestamp)
		if !ok {
			return types.MaybeNoSuchOverloadErr(values[0])
		}
		return types.Timestamp{Time: at.In(zone)}.Receive(call.Function(), "", nil)
	}), nil
}
