package trackers

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"exp/experiments/store"
)

// Live writes the TensorBoard events of a run while it runs: a folder per run, as the
// export does it, with one event per step that holds all its scalars and texts. TensorBoard
// follows the file. Not safe for concurrent use.
type Live struct {
	file *os.File
	last int64 // step of the last event; -1: none
}

// Text is a completion to show, by its tag.
type Text struct {
	Tag      string
	Markdown string
}

// OpenLive opens the event file of a run under dir, or begins it with the run's configuration
// as hyperparameters. It drops an event that a killed process wrote half.
func OpenLive(dir string, r store.Run, config string) (*Live, error) {
	folder := filepath.Join(dir, folder(r))
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(folder, eventFile(r)), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	l := &Live{file: file, last: -1}
	end, err := l.scan()
	if err == nil && end == 0 {
		err = l.begin(r, config)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", file.Name(), err), file.Close())
	}
	return l, nil
}

// HasLive reports whether a run has an event file under dir.
func HasLive(dir string, r store.Run) bool {
	_, err := os.Stat(filepath.Join(dir, folder(r), eventFile(r)))
	return err == nil
}

// eventFile is the name of a run's event file.
func eventFile(r store.Run) string {
	return fmt.Sprintf("events.out.tfevents.%010d.exp.%s", r.Created.Unix(), r.RID.Short())
}

// scan finds the last step and cuts the file after the last whole event. It returns the
// file's length.
func (l *Live) scan() (end int64, err error) {
	in := bufio.NewReader(l.file)
	for n := 0; ; n++ {
		data, err := readRecord(in)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return 0, err
		}
		end += int64(len(data)) + 16 // a length, two checksums
		err = fields(data, func(f field) error {
			if f.id == eventStep && n >= headEvents {
				l.last = max(l.last, int64(f.number))
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	if err := l.file.Truncate(end); err != nil {
		return 0, err
	}
	_, err = l.file.Seek(end, io.SeekStart)
	return end, err
}

// headEvents is how many events begin writes.
const headEvents = 2

// begin writes the head of a new file.
func (l *Live) begin(r store.Run, config string) error {
	var tree map[string]any
	if err := json.Unmarshal([]byte(config), &tree); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	session := appendString(nil, sessionGroup, folder(r))
	session = appendDouble(session, sessionStart, float64(r.Created.UnixMilli())/1000)
	params := map[string]any{}
	leaves("", tree, params)
	params["seed"] = float64(r.Seed)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		entry := appendBytes(appendString(nil, 1, name), 2, protoValue(params[name]))
		session = appendBytes(session, sessionParams, entry)
	}
	head := appendEvent(nil, r.Created, 0, "", 0)
	head = appendValues(head, r.Created, 0, hyperparameters("_hparams_/session_start_info", hparamsStart, session))
	_, err := l.file.Write(head)
	return err
}

// leaves collects the values of nested objects by dotted path. Lists become text.
func leaves(path string, v any, into map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			leaves(strings.TrimPrefix(path+"."+name, "."), inner, into)
		}
	case string, bool, float64:
		into[path] = v
	case nil:
	default:
		b, _ := json.Marshal(v) // it came out of JSON
		into[path] = string(b)
	}
}

// Step writes a step. It does nothing, and fresh is false, if the file has the step already: a
// resumed run repeats the steps after its checkpoint.
func (l *Live) Step(at time.Time, step int64, scalars map[string]float64, texts []Text) (fresh bool, err error) {
	if step <= l.last {
		return false, nil
	}
	values := scalarValues(scalars)
	for _, t := range texts {
		values = append(values, textValue(t))
	}
	if _, err := l.file.Write(appendValues(nil, at, step, values...)); err != nil {
		return false, err
	}
	l.last = step
	return true, nil
}

// Add writes more values of a step that the file has, such as those of a validation that came later.
func (l *Live) Add(at time.Time, step int64, scalars map[string]float64) error {
	_, err := l.file.Write(appendValues(nil, at, step, scalarValues(scalars)...))
	return err
}

// scalarValues returns the messages of scalars, by name.
func scalarValues(scalars map[string]float64) (values [][]byte) {
	for _, name := range slices.Sorted(maps.Keys(scalars)) {
		values = append(values, appendFloat(appendString(nil, valueTag, name), valueSimple, float32(scalars[name])))
	}
	return values
}

// Done marks the run as finished, after its last step.
func (l *Live) Done(at time.Time) error {
	end := appendVarint(nil, sessionStatus, sessionSuccess)
	end = appendDouble(end, sessionEnd, float64(at.UnixMilli())/1000)
	info := hyperparameters("_hparams_/session_end_info", hparamsEnd, end)
	_, err := l.file.Write(appendValues(nil, at, l.last, info))
	return err
}

// Close closes the file.
func (l *Live) Close() error { return l.file.Close() }

// Fields of the messages of TensorBoard's plugins (tensorboard/plugins/hparams/plugin_data.proto,
// tensorboard/compat/proto/summary.proto).
const (
	metadataPlugin, metadataClass             = 1, 4
	pluginName, pluginContent                 = 1, 2
	classTensor                               = 2
	tensorShape, tensorStrings, typeString    = 2, 8, 7
	hparamsVersion, hparamsStart, hparamsEnd  = 1, 3, 4
	sessionParams, sessionGroup, sessionStart = 1, 4, 5
	sessionStatus, sessionEnd, sessionSuccess = 1, 2, 1
	protoNumber, protoString, protoBool       = 2, 3, 4
)

// appendValues appends the record of an event with several values.
func appendValues(dst []byte, wall time.Time, step int64, values ...[]byte) []byte {
	var summary []byte
	for _, v := range values {
		summary = appendBytes(summary, summaryValue, v)
	}
	e := appendDouble(nil, eventWallTime, float64(wall.UnixMilli())/1000)
	return appendRecord(dst, appendBytes(appendVarint(e, eventStep, uint64(step)), eventSummary, summary))
}

// hyperparameters is a value of the hparams plugin.
func hyperparameters(tag string, kind protowire.Number, message []byte) []byte {
	content := appendBytes(appendVarint(nil, hparamsVersion, 0), kind, message)
	plugin := appendBytes(appendString(nil, pluginName, "hparams"), pluginContent, content)
	v := appendBytes(appendString(nil, valueTag, tag), valueMetadata, appendBytes(nil, metadataPlugin, plugin))
	tensor := appendBytes(appendVarint(nil, tensorType, typeFloat), tensorShape, nil)
	return appendBytes(v, valueTensor, tensor)
}

// textValue is a value of the text plugin.
func textValue(t Text) []byte {
	metadata := appendBytes(nil, metadataPlugin, appendString(nil, pluginName, "text"))
	metadata = appendVarint(metadata, metadataClass, classTensor)
	tensor := appendBytes(appendVarint(nil, tensorType, typeString), tensorShape, nil)
	tensor = appendString(tensor, tensorStrings, t.Markdown)
	v := appendBytes(appendString(nil, valueTag, t.Tag), valueMetadata, metadata)
	return appendBytes(v, valueTensor, tensor)
}

// protoValue is a google.protobuf.Value.
func protoValue(v any) []byte {
	switch v := v.(type) {
	case float64:
		return appendDouble(nil, protoNumber, v)
	case bool:
		n := uint64(0)
		if v {
			n = 1
		}
		return appendVarint(nil, protoBool, n)
	}
	return appendString(nil, protoString, v.(string))
}
