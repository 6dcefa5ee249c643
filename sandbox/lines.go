package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// RunRow is the JSON layout of a run. Bytes that are not UTF-8 become U+FFFD in the text; the base64 field
// is exact.
type RunRow struct {
	Status          Verdict `json:"status"`
	ExitCode        int     `json:"exit_code"`
	Signal          string  `json:"signal"`
	WallMS          float64 `json:"wall_ms"`
	CPUMS           float64 `json:"cpu_ms"`
	MemoryKB        int64   `json:"memory_kb"`
	Stdout          string  `json:"stdout"`
	StdoutB64       string  `json:"stdout_b64,omitempty"`
	StdoutBytes     int64   `json:"stdout_bytes"`
	StdoutTruncated bool    `json:"stdout_truncated"`
	Stderr          string  `json:"stderr"`
	Borderline      bool    `json:"borderline,omitempty"`
	Shared          int     `json:"shared,omitempty"`
	Detail          string  `json:"detail"`
}

// Row converts r to the layout of results.
func (r Run) Row() RunRow {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	j := RunRow{Status: r.Status, ExitCode: r.ExitCode, Signal: r.Signal, WallMS: ms(r.Wall), CPUMS: ms(r.CPU),
		MemoryKB: r.MemoryKB,
		Stdout:   string(r.Stdout), StdoutBytes: r.StdoutBytes, StdoutTruncated: r.StdoutTruncated,
		Stderr:     strings.ToValidUTF8(string(r.Stderr), "\ufffd"),
		Borderline: r.Borderline, Shared: r.Shared, Detail: strings.ToValidUTF8(r.Detail, "\ufffd")}
	if !utf8.Valid(r.Stdout) {
		j.Stdout, j.StdoutB64 = strings.ToValidUTF8(j.Stdout, "\ufffd"), base64.StdEncoding.EncodeToString(r.Stdout)
	}
	return j
}

// MarshalJSON writes Row.
func (r Run) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r.Row()); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// maxLine is the length limit of a request.
const maxLine = 64 << 20

// ServeLines reads one JSON request per line and writes one JSON result per line, in input order, each as
// soon as it and those before it are ready. It runs up to workers of them at once. A malformed line gives a
// result that says so. Errors come from reading, writing and ctx.
func (p *Pool) ServeLines(ctx context.Context, in io.Reader, out io.Writer, workers int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type task struct {
		line   []byte
		err    error
		result chan Result
	}
	workers = max(1, workers)
	todo := make(chan *task)
	order := make(chan *task, 4*workers) // how far the fastest may run ahead of the slowest
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for t := range todo {
				t.result <- p.runLine(ctx, t.line, t.err)
			}
		})
	}
	var readErr error
	group.Go(func() {
		defer close(order)
		defer close(todo)
		lines := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := readLine(lines)
			if errors.Is(err, errLongLine) || err == nil {
				if err == nil && len(bytes.TrimSpace(line)) == 0 {
					continue
				}
				t := &task{line: line, err: err, result: make(chan Result, 1)}
				select {
				case order <- t:
				case <-ctx.Done():
					return
				}
				todo <- t
				continue
			}
			if !errors.Is(err, io.EOF) {
				readErr = err
			}
			return
		}
	})
	var writeErr error
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for t := range order {
		r := <-t.result
		if writeErr == nil && ctx.Err() == nil {
			if writeErr = enc.Encode(r); writeErr != nil {
				cancel()
			}
		}
	}
	group.Wait()
	if writeErr != nil {
		return fmt.Errorf("write a result: %w", writeErr)
	}
	return errors.Join(readErr, ctx.Err())
}

var errLongLine = fmt.Errorf("line longer than %d MB", maxLine>>20)

// readLine reads up to the next newline. A line that is too long is read and discarded. The last line needs
// no newline.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		if len(line) > maxLine {
			line, long = nil, true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !long):
			return nil, err
		case long:
			return nil, errLongLine
		default:
			return line, nil
		}
	}
}

// runLine runs one line.
func (p *Pool) runLine(ctx context.Context, line []byte, err error) Result {
	r, err := parseRequest(line, err)
	if err != nil {
		return Result{ID: r.ID, Verdict: InfraError, Isolation: p.Level(),
			Runs: []Run{{Status: InfraError, ExitCode: -1, Detail: "invalid request: " +
				err.Error()}}}
	}
	return p.Run(ctx, r)
}

// parseRequest reads a request strictly; it fills in the id if possible, even in an invalid request.
func parseRequest(line []byte, err error) (Request, error) {
	var r Request
	if err != nil {
		return r, err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
		return r, errors.New("not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err = d.Decode(&r); err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value on the line")
		}
	}
	if err == nil && r.Source == "" {
		var given struct{ Source *string }
		if _ = json.Unmarshal(line, &given); given.Source == nil {
			err = errors.New("no source")
		}
	}
	if err != nil {
		named := struct {
			ID string `json:"id"`
		}{r.ID}
		_ = json.Unmarshal(line, &named)
		r = Request{ID: named.ID}
	}
	return r, err
}
