package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"exp"
	"exp/eval/task"
	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/experiments/trackers"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/plan"
	"exp/harness/sources"
	"exp/train/checkpoint"
)

// storedConfig returns the resolved configuration as stored.
func storedConfig(r *config.Resolved) (store.Config, error) {
	values := map[string]any{}
	origins := map[string]string{}
	for _, k := range r.Keys() {
		v, _ := r.Value(k.Path)
		nest(values, strings.Split(k.Path, "."), v)
		origins[k.Path] = r.Origin(k.Path)
	}
	text, err := json.Marshal(values)
	if err != nil {
		return store.Config{}, err
	}
	where, err := json.Marshal(origins)
	if err != nil {
		return store.Config{}, err
	}
	digest, err := ident.Hash("exp/config/1", values)
	if err != nil {
		return store.Config{}, err
	}
	return store.Config{Digest: digest, JSON: string(text), Source: r.YAML(), Origins: string(where)}, nil
}

// ConfigChanged says how the JSON of a stored configuration differs from what was recorded: from the values that its
// digest is of. It is "" if it does not, or if neither the digest nor the source can tell.
func ConfigChanged(c store.Config) string {
	values, known, err := config.Stored(c.JSON)
	if err != nil {
		return "it cannot be read: " + err.Error()
	}
	d, err := ident.Hash("exp/config/1", values)
	if err == nil && d == c.Digest || trackers.ConfigDigest([]byte(c.JSON)) == c.Digest {
		return ""
	}
	if r, err := config.Load(config.Input{File: "configuration", Data: []byte(c.Source)}); err == nil {
		if changed := differsFrom(r, values, func(*config.Key) bool { return true }); changed != "" {
			return changed
		}
	}
	if !known {
		return "" // another version of this program may have written it
	}
	return fmt.Sprintf("it was changed after it was recorded: its digest is %s, not %s", d.Short(), c.Digest.Short())
}

// StageChanged says that a stage's record was changed after it was made: its id, under which other runs find it, does
// not follow from its parameters, inputs, code, seed and numerics. It is "" if the id does, or if the record cannot
// tell: of a kind or a key that this version does not have.
func StageChanged(s store.Stage) string {
	if config.Stage(s.Kind).Facts().Stage == "" {
		return ""
	}
	params, known, err := config.Stored(string(s.Params))
	if err != nil {
		return "its parameters cannot be read: " + err.Error()
	}
	id := ident.Stage{Kind: s.Kind, Params: params, Inputs: map[string]ident.Digest{}, Code: s.Code, Seed: s.Seed,
		Numerics: s.Numerics}
	for _, in := range s.Inputs {
		id.Inputs[in.Role] = in.Digest
	}
	if sid, err := plan.StageID(id, s.Label); err != nil || sid == s.SID || !known {
		return ""
	}
	return "its parameters, inputs, code, seed or numerics were changed after they were recorded: they do not give " +
		"its id"
}

// differsFrom names the first of some keys whose stored value is not the one in r; "" if all agree.
func differsFrom(r *config.Resolved, stored map[string]any, of func(*config.Key) bool) string {
	for _, k := range r.Keys() {
		want, _ := r.Value(k.Path)
		had, ok := config.StoredAt(stored, k.Path)
		if a, b := jsonOf(had), jsonOf(want); ok && of(k) && a != b {
			return fmt.Sprintf("%s is %s, but %s in its source: it was changed after it was recorded", k.Path, a, b)
		}
	}
	return ""
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// nest sets the value of a dotted path in nested objects.
func nest(m map[string]any, path []string, v any) {
	for _, p := range path[:len(path)-1] {
		next, ok := m[p].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[p] = next
		}
		m = next
	}
	m[path[len(path)-1]] = v
}

// Machine describes the machine of this process.
type Machine struct {
	CPU    string // the processor's name; empty if unknown
	Cores  int    // cores that this process may use
	Memory int64  // bytes; 0 if unknown
}

// ThisMachine asks the system.
func ThisMachine() Machine {
	return Machine{CPU: cpuName(), Cores: runtime.NumCPU(), Memory: device.HostMemory()}
}

// provenance describes this process and machine.
func (x *execution) provenance() store.Attempt {
	host, _ := os.Hostname() // for display only
	dir, _ := os.Getwd()     // for advice only
	backend, class := "", "" // hashing files needs no device
	if x.Backend != nil {
		backend, class = x.Backend.Name(), x.Backend.Class()
	}
	facts := map[string]any{
		"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(),
		"cpu": cpuName(), "memory_bytes": device.HostMemory(), "backend": backend, "class": class, "args": os.Args,
		"dir": dir,
	}
	x.Ranks.facts(facts, x.Backend)
	if gpu, ok := x.Backend.(interface{ Driver() string }); ok {
		facts["cuda"] = gpu.Driver()
	}
	if x.p != nil { // checking files needs no plan
		if c := &x.p.Config.Run; task.RunsPrograms(c.Task.Kinds()...) || c.Rollout.Tools.Kind == "python" {
			facts["sandbox"] = sandboxFacts(c)
		}
	}
	env, err := json.Marshal(facts)
	if err != nil {
		panic("run: " + err.Error())
	}
	return store.Attempt{Run: x.run.ID, Kind: store.AttemptRun, Host: host, PID: os.Getpid(), Device: backend,
		Build: x.Build, Env: env}
}

// cpuName returns the processor's name if the system reports it.
func cpuName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// keepSources stores the module's sources, once per state.
func (x *execution) keepSources(ctx context.Context) error {
	kept, err := x.DB.SourceCodes(ctx)
	if err != nil {
		return err
	}
	var archive ident.Digest
	var size int64
	for _, kind := range slices.Sorted(maps.Keys(x.p.Code)) {
		c := x.p.Code[kind]
		if slices.Contains(kept, c.Digest) {
			continue
		}
		kept = append(kept, c.Digest)
		if archive.IsZero() {
			var err error
			if archive, size, err = x.putSources(); err != nil {
				return err
			}
		}
		if err := x.DB.AddSource(ctx, store.Source{Code: c.Digest, Go: runtime.Version(), Files: c.Files,
			Archive: archive, Size: size}); err != nil {
			return err
		}
	}
	return nil
}

// putSources stores the module's sources, packed. A process that does so for several stores keeps them
// packed from the second on.
func (x *execution) putSources() (archive ident.Digest, size int64, err error) {
	if sourcesPut.Swap(true) {
		packed, err := packedSources()
		if err != nil {
			return archive, 0, err
		}
		archive, err = x.DB.Blobs.PutBytes(packed)
		return archive, int64(len(packed)), err
	}
	paths, err := sources.Paths()
	if err != nil {
		return archive, 0, err
	}
	checkpoint.DropProgramPages() // sources that digests read, and what only the start needed
	return x.DB.Blobs.PutTree(exp.Sources, paths)
}

var sourcesPut atomic.Bool

// packedSources packs the module's sources, once per process.
var packedSources = sync.OnceValues(func() ([]byte, error) {
	paths, err := sources.Paths()
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	err = blob.WriteTree(&packed, exp.Sources, paths)
	return packed.Bytes(), err
})

// fileDigest returns a file's size and, if wanted, its digest.
func fileDigest(path string, wanted bool) (int64, ident.Digest, error) {
	if !wanted {
		info, err := os.Stat(path)
		if err != nil {
			return 0, ident.Digest{}, err
		}
		return info.Size(), ident.Digest{}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, ident.Digest{}, err
	}
	defer f.Close()
	d, n, err := ident.SumReader(f)
	return n, d, err
}

// fileDigests returns the digests of files in dir, which all cores hash, and the error of each.
func fileDigests(dir string, names []string) ([]ident.Digest, []error) {
	sizes, digests, errs := make([]int64, len(names)), make([]ident.Digest, len(names)), make([]error, len(names))
	for i, name := range names {
		sizes[i], _, errs[i] = fileDigest(filepath.Join(dir, name), false)
	}
	ident.OnAllCores(sizes, func(i int) {
		if errs[i] == nil {
			_, digests[i], errs[i] = fileDigest(filepath.Join(dir, names[i]), true)
		}
	})
	return digests, errs
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
