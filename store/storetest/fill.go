package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// fill sets every field of a record, except Version, to a value that is not zero. fill uses reflection, so fill also
// sets new fields. A test fails if a backend does not store a new field. If rough is set, times have nanoseconds and a
// time zone, which the store must not keep.
func fill[T any](rough bool) T {
	var rec T
	f := filler{rough: rough}
	f.fill(reflect.ValueOf(&rec).Elem(), "r")
	if v := reflect.ValueOf(&rec).Elem().FieldByName("Version"); v.IsValid() {
		v.SetUint(0)
	}
	return rec
}

type filler struct {
	n     int
	rough bool
}

func (f *filler) fill(v reflect.Value, path string) {
	f.n++
	switch v.Interface().(type) {
	case time.Time:
		t := start.Add(time.Duration(f.n) * time.Hour)
		if f.rough {
			t = t.Add(789 * time.Nanosecond).In(time.FixedZone("UTC+5:30", 19800))
		}
		v.Set(reflect.ValueOf(t))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(fmt.Sprintf("{ \"a\":\t%d.0, \"html\": \"<&>\" }", f.n))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s <&> \"ü😀\" %d", path, f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n%4 + 1)) // also a valid risk level
	case reflect.Uint64:
		v.SetUint(uint64(f.n%4 + 1))
	case reflect.Uint8:
		v.SetUint(uint64(250 - f.n%4)) // invalid UTF-8
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(v.Index(i), path)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, path)
			f.fill(value, path)
			v.SetMapIndex(key, value)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() { // a field that JSON leaves out is not part of the record
			if field := v.Type().Field(i); field.IsExported() && field.Tag.Get("json") != "-" {
				f.fill(v.Field(i), field.Name)
			}
		}
	default:
		panic(fmt.Sprintf("storetest: a record has a field of type %s, which fill does not know", v.Type()))
	}
}
