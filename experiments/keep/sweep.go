package keep

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// Grace protects young files that nothing refers to: a process writes a blob first and
// records it afterwards. What was written since the first of the processes began that execute runs now is protected as
// long as it works: a step of training may take longer, and images that agents brought are recorded at its end.
const Grace = time.Hour

// Kind is the reason why an item can be removed. A budget removes kinds in this order.
type Kind string

const (
	Unfinished   Kind = "unfinished"       // left by a process that did not finish
	Unreferenced Kind = "unreferenced"     // a blob that no run needs
	Training     Kind = "training samples" // texts of training's completions; only for a budget
	Checkpoints  Kind = "checkpoints"      // except each stage's newest; only for a budget
	DeletedRuns  Kind = "deleted runs"     // their rows, files and blobs that only they need
)

// Options configures a sweep.
type Options struct {
	Now time.Time
	// OlderThan keeps younger items: runs by time of deletion, files by time of writing.
	// For files it is at least Grace.
	OlderThan time.Duration
	// Budget is the maximum size of the store in bytes. If it is not negative, the sweep
	// removes only as much as needed to meet it, training samples and checkpoints
	// included.
	Budget int64
}

// Item is something that can be removed.
type Item struct {
	Kind  Kind
	What  string // kind of blob, or "file", "checkpoint", "files"
	Name  string // digest, path in the store, or run
	Bytes int64
	Time  time.Time // of the youngest part of it

	digests []ident.Digest // blobs to remove
	path    string         // file or folder to remove
	run     *store.Run     // the run to remove, or whose checkpoint is removed
	step    int64
}

// Plan is the result of a sweep.
type Plan struct {
	Items []Item
	Total int64 // bytes of all files of the store, the database included
	Over  int64 // bytes above the budget that cannot be freed
	Young int64 // bytes kept only because they are younger than Grace, Options.OlderThan or a run that is executed
	opts  Options
}

// sweep is the state of Sweep.
type sweep struct {
	db    *store.DB
	o     Options
	runs  map[int64]*store.Run
	going []*store.Run // removable deleted runs, oldest deletion first
	tags  map[store.RunTag]bool
	uses  map[ident.Digest][]store.Use
	kinds map[ident.Digest]string // of recorded blobs
	files map[ident.Digest]blob.File
	since time.Time // when the first process that executes a run now began; zero: none does
	plan  *Plan
}

// Sweep finds items that can be removed. It changes nothing.
func Sweep(ctx context.Context, db *store.DB, o Options) (*Plan, error) {
	s := &sweep{db: db, o: o, plan: &Plan{opts: o}}
	for _, f := range []func(context.Context) error{s.readRuns, s.readUses, s.readFiles} {
		if err := f(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	if s.plan.Total, err = treeSize(db.Dir()); err != nil {
		return nil, err
	}
	for _, f := range []func() error{s.unfinished, s.unreferenced, s.training, s.checkpoints, s.deletedRuns} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	s.applyBudget()
	return s.plan, nil
}

// readRuns finds the removable deleted runs: no remaining run depends on them.
func (s *sweep) readRuns(ctx context.Context) error {
	tags, err := s.db.AllTags(ctx)
	if err != nil {
		return err
	}
	s.tags, s.runs = map[store.RunTag]bool{}, map[int64]*store.Run{}
	for _, t := range tags {
		s.tags[t] = true
	}
	going := map[int64]bool{}
	for _, deleted := range []bool{false, true} {
		runs, err := s.db.Runs(ctx, store.RunQuery{Deleted: deleted})
		if err != nil {
			return err
		}
		for i := range runs {
			r := &runs[i]
			s.runs[r.ID] = r
			holder, alive := s.db.Alive(r.RID)
			if alive && (s.since.IsZero() || holder.Start.Before(s.since)) {
				s.since = holder.Start
			}
			going[r.ID] = deleted && !alive && !s.pinned(r) && s.old(r.Deleted, 0)
		}
	}
	depends, err := s.db.Dependencies(ctx)
	if err != nil {
		return err
	}
	for changed := true; changed; {
		changed = false
		for _, d := range depends {
			if going[d.On] && !going[d.Run] {
				going[d.On], changed = false, true
			}
		}
	}
	for id, r := range s.runs {
		if going[id] {
			s.going = append(s.going, r)
		}
	}
	slices.SortFunc(s.going, func(a, b *store.Run) int {
		return cmp.Or(a.Deleted.Compare(b.Deleted), cmp.Compare(a.ID, b.ID))
	})
	return nil
}

func (s *sweep) pinned(r *store.Run) bool { return s.tags[store.RunTag{Run: r.ID, Tag: store.PinTag}] }

// busy reports whether a run must not be touched.
func (s *sweep) busy(r *store.Run) bool {
	if s.pinned(r) {
		return true
	}
	_, alive := s.db.Alive(r.RID)
	return alive
}

// old reports whether t is old enough.
func (s *sweep) old(t time.Time, least time.Duration) bool {
	return !t.After(s.o.Now.Add(-max(least, s.o.OlderThan)))
}

// aged is old for a file of some size that nothing but its age keeps; it counts the young ones.
func (s *sweep) aged(t time.Time, size int64) bool {
	if s.old(t, Grace) {
		return true
	}
	s.plan.Young += size
	return false
}

func (s *sweep) readUses(ctx context.Context) error {
	uses, err := s.db.Uses(ctx)
	if err != nil {
		return err
	}
	s.uses = map[ident.Digest][]store.Use{}
	for _, u := range uses {
		s.uses[u.Digest] = append(s.uses[u.Digest], u)
	}
	blobs, err := s.db.RecordedBlobs(ctx)
	s.kinds = make(map[ident.Digest]string, len(blobs))
	for _, b := range blobs {
		s.kinds[b.Digest] = b.Kind
	}
	return err
}

func (s *sweep) readFiles(context.Context) error {
	s.files = map[ident.Digest]blob.File{}
	return s.db.Blobs.Files(func(f blob.File) error {
		s.files[f.Digest] = f
		return nil
	})
}

func (s *sweep) add(it Item) { s.plan.Items = append(s.plan.Items, it) }

// unfinished finds partial files that a process left behind.
func (s *sweep) unfinished() error {
	for _, dir := range []string{"tmp", "trash"} {
		entries, err := os.ReadDir(filepath.Join(s.db.Dir(), dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			size, err := treeSize(filepath.Join(s.db.Dir(), path))
			// A folder does not change when a file in it does: a long import writes there.
			last, e := youngest(filepath.Join(s.db.Dir(), path))
			if err = cmp.Or(err, e); errors.Is(err, fs.ErrNotExist) {
				continue // just removed
			}
			if err != nil {
				return err
			}
			if s.aged(last, size) {
				s.add(Item{Kind: Unfinished, What: "file", Name: path, Bytes: size, Time: last, path: path})
			}
		}
	}
	return nil
}

// unreferenced finds blobs that no run needs, deleted or not.
func (s *sweep) unreferenced() error {
	for _, d := range s.digests() {
		f := s.files[d]
		if len(s.uses[d]) > 0 {
			continue
		}
		if !s.since.IsZero() && f.Time.After(s.since) {
			s.plan.Young += f.Size
			continue
		}
		if s.aged(f.Time, f.Size) {
			s.add(s.blobItem(Unreferenced, f))
		}
	}
	return nil
}

func (s *sweep) blobItem(k Kind, f blob.File) Item {
	what := s.kinds[f.Digest]
	if what == "" {
		what = "never recorded"
	}
	return Item{Kind: k, What: what, Name: f.Digest.String(), Bytes: f.Size, Time: f.Time,
		digests: []ident.Digest{f.Digest}}
}

// digests returns the digests of the existing blobs, oldest first.
func (s *sweep) digests() []ident.Digest {
	list := make([]ident.Digest, 0, len(s.files))
	for d := range s.files {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b ident.Digest) int {
		return cmp.Or(s.files[a].Time.Compare(s.files[b].Time), cmp.Compare(string(a[:]), string(b[:])))
	})
	return list
}

// training finds packs that hold only completions from training.
func (s *sweep) training() error {
	if s.o.Budget < 0 {
		return nil
	}
	for _, d := range s.digests() {
		f, uses := s.files[d], s.uses[d]
		droppable := len(uses) > 0 && !slices.ContainsFunc(uses, func(u store.Use) bool {
			return u.For != store.UseTraining || s.busy(s.runs[u.Run])
		})
		if droppable && !s.onlyGoing(uses) && s.aged(f.Time, f.Size) {
			s.add(s.blobItem(Training, f))
		}
	}
	return nil
}

// onlyGoing reports whether all uses are by runs that are removable as a whole.
func (s *sweep) onlyGoing(uses []store.Use) bool {
	return !slices.ContainsFunc(uses, func(u store.Use) bool {
		return !slices.ContainsFunc(s.going, func(r *store.Run) bool { return r.ID == u.Run })
	})
}

// checkpoints finds checkpoints that are neither pinned nor the newest of their stage.
func (s *sweep) checkpoints() error {
	if s.o.Budget < 0 {
		return nil
	}
	var found []Item
	for _, r := range s.runs {
		if s.busy(r) || slices.Contains(s.going, r) {
			continue
		}
		list, err := Saved(s.db, r.RID)
		if err != nil {
			return err
		}
		for i, c := range list {
			newest := i == len(list)-1 || list[i+1].Stage != c.Stage
			if newest || s.tags[store.RunTag{Run: r.ID, Tag: store.CheckpointPin(c.Step)}] {
				continue
			}
			size, err := treeSize(c.Dir)
			if err != nil {
				return err
			}
			if !s.aged(c.Time, size) {
				continue
			}
			rel, err := filepath.Rel(s.db.Dir(), c.Dir)
			if err != nil {
				return err
			}
			found = append(found, Item{Kind: Checkpoints, What: "checkpoint", Name: rel, Bytes: size, Time: c.Time,
				path: rel, run: r, step: c.Step})
		}
	}
	slices.SortFunc(found, func(a, b Item) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Name, b.Name)) })
	s.plan.Items = append(s.plan.Items, found...)
	return nil
}

// deletedRuns makes an item of each removable run. A blob that several of them need goes
// with the last one.
func (s *sweep) deletedRuns() error {
	order := make(map[int64]int, len(s.going))
	for i, r := range s.going {
		order[r.ID] = i
	}
	items := make([]Item, len(s.going))
	for i, r := range s.going {
		dir, err := filepath.Rel(s.db.Dir(), s.db.RunDir(r.RID))
		if err != nil {
			return err
		}
		size, err := treeSize(s.db.RunDir(r.RID))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		items[i] = Item{Kind: DeletedRuns, What: "run", Name: r.RID.String(), Bytes: size, Time: r.Deleted, path: dir,
			run: r}
	}
	for _, d := range s.digests() {
		last, f := -1, s.files[d]
		for _, u := range s.uses[d] {
			i, ok := order[u.Run]
			if !ok {
				last = -1
				break
			}
			last = max(last, i)
		}
		if last >= 0 && s.aged(f.Time, f.Size) {
			items[last].digests = append(items[last].digests, d)
			items[last].Bytes += f.Size
		}
	}
	s.plan.Items = append(s.plan.Items, items...)
	return nil
}

// applyBudget truncates items, in removal order, to those needed to meet the budget.
func (s *sweep) applyBudget() {
	if s.o.Budget < 0 {
		return
	}
	over := s.plan.Total - s.o.Budget
	n := 0
	for ; n < len(s.plan.Items) && over > 0; n++ {
		over -= s.plan.Items[n].Bytes
	}
	s.plan.Items = s.plan.Items[:n]
	s.plan.Over = max(0, over)
}

// treeSize returns the total size of the files at and below path.
func treeSize(path string) (n int64, err error) {
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				n += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) && p != path {
			return nil // just removed
		}
		return err
	})
	return n, err
}

// youngest returns when the youngest of the files and folders at and below path was written.
func youngest(path string) (t time.Time, err error) {
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil && info.ModTime().After(t) {
				t = info.ModTime()
			}
		}
		if errors.Is(err, fs.ErrNotExist) && p != path {
			return nil // just removed
		}
		return err
	})
	return t, err
}
