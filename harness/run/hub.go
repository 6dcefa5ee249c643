package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/hub"
)

// hubEvent is the kind of the event that says where a run's models and data came from.
const hubEvent = "hub"

// hubRecord is the data of that event.
type hubRecord struct {
	From []hub.Provenance `json:"from"`
}

// provenanceOf returns the origin of everything that a configuration names on a hub: repository,
// revision, commit, and the sha256 of each file.
func provenanceOf(ctx context.Context, r *config.Resolved, endpoint string) (list []hub.Provenance, err error) {
	for _, x := range r.Remotes {
		if x.Err != nil {
			continue
		}
		p := hub.Provenance{Key: x.Key, Endpoint: endpoint, Kind: x.Ref.Kind, Repo: x.Ref.Name,
			Revision: x.Ref.Revision,
			Commit:   x.Found.Commit}
		if p.Files, err = x.Found.Sums(ctx); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// recordHub records where the run's models and data came from, unless the newest record
// says the same. The identity of the run has the digests of the contents instead.
func (x *execution) recordHub(ctx context.Context) error {
	if len(x.p.Config.Remotes) == 0 {
		return nil
	}
	list, err := provenanceOf(ctx, x.p.Config, x.Endpoint)
	if err != nil {
		return err
	}
	data, err := json.Marshal(hubRecord{list})
	if err != nil {
		return err
	}
	last, err := lastHub(ctx, x.DB, x.run.ID)
	if err != nil || bytes.Equal(last, data) {
		return err
	}
	return x.DB.AddEvent(ctx, store.Event{Run: x.run.ID, Level: store.LevelInfo, Kind: hubEvent, Data: data})
}

// lastHub returns the data of the newest event of the kind, or nil.
func lastHub(ctx context.Context, db *store.DB, run int64) (data json.RawMessage, err error) {
	events, err := db.Events(ctx, run, 0)
	for _, e := range events {
		if e.Kind == hubEvent {
			data = e.Data
		}
	}
	return data, err
}

// HubSources returns where a run's models and data came from on a hub, as its record says.
func HubSources(ctx context.Context, db *store.DB, run int64) ([]hub.Provenance, error) {
	data, err := lastHub(ctx, db, run)
	if err != nil || data == nil {
		return nil, err
	}
	var r hubRecord
	err = json.Unmarshal(data, &r)
	return r.From, err
}

// HubCommits returns the commits that a run's record names, by repository.
func HubCommits(ctx context.Context, db *store.DB, run int64) (map[hub.Repo]string, error) {
	list, err := HubSources(ctx, db, run)
	commits := map[hub.Repo]string{}
	for _, p := range list {
		commits[hub.Repo{Kind: p.Kind, Name: p.Repo}] = p.Commit
	}
	return commits, err
}

// lackRemotes tells lack everything that a configuration names on a hub and the cache lacks,
// with the commands that bring it. It returns the keys.
func lackRemotes(r *config.Resolved, lack func(missing, do string)) map[string]bool {
	keys := map[string]bool{}
	cache := ""
	for _, x := range r.Remotes {
		if x.Err == nil {
			continue
		}
		keys[x.Key] = true
		var missing *hub.MissingError
		var advised interface{ Hint() string }
		switch {
		case errors.As(x.Err, &missing) && !missing.Never:
			cache = missing.Cache
			lack(x.Key+": "+x.Err.Error(), "")
		case errors.As(x.Err, &advised):
			lack(x.Key+": "+x.Err.Error(), advised.Hint())
		}
	}
	list := hub.Requests(r.MissingRefs())
	if len(list) == 0 {
		return keys
	}
	if cache == "" {
		lack("", "export HF_HUB_CACHE=FOLDER, where files of the hub are to be kept")
	}
	for _, request := range list {
		lack("", request.Command())
	}
	lack("", "with a network, exp run --get does that; without one, do it elsewhere and there pack the folders:")
	for i, command := range hub.Carry(cache, list) {
		if i == 1 {
			lack("", "bring hub.tar here (or a whole cache, named by HF_HUB_CACHE) and unpack it:")
		}
		lack("", command)
	}
	return keys
}
