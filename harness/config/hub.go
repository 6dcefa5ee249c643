package config

import (
	"fmt"
	"slices"

	"exp/harness/hub"
)

// Remote is a key whose value names something on a hub. A loaded configuration has the
// path in the cache in its typed values, and the reference, hub:…, everywhere else.
type Remote struct {
	Key   string
	Ref   hub.Ref
	Found hub.Found // in the cache; zero if Err is not nil
	Err   error     // why it cannot be used: a *hub.MissingError or a *hub.AmbiguousError
}

// remoteKeys are the keys that may name something on a hub, with the part they need.
func remoteKeys() map[string]hub.Part {
	return map[string]hub.Part{
		"model.base": hub.Weights, "model.adapter": hub.Weights, "reward.weights": hub.Weights,
		"algo.reference": hub.Weights, "algo.teachers": hub.Weights, "algo.prime.model": hub.Weights,
		ScorerKey:        hub.Weights,
		"tokenizer.path": hub.Tokenizer, "data.train.source": hub.Data, "data.val.source": hub.Data,
		"data.test.source": hub.Data, "data.train.more": hub.Data, "data.val.more": hub.Data,
		"data.test.more": hub.Data, "sft.source": hub.Data, "prefer.source": hub.Data,
		"reward_model.source": hub.Data, "reward_model.val": hub.Data,
	}
}

// locate finds the references of a configuration and replaces them by paths in values.
// References that find does not find stay; find may be nil.
func (r *Resolved) locate(values map[string]any, find func(hub.Ref) (hub.Found, error)) {
	parts := remoteKeys()
	for _, k := range schema().keys {
		part, remote := parts[k.Path]
		switch v := values[k.Path].(type) {
		case string:
			if remote {
				values[k.Path] = r.located(k.Path, v, part, find)
			}
		case []any:
			if remote {
				list := slices.Clone(v)
				for i := range list {
					list[i] = r.located(k.Path, list[i].(string), part, find)
				}
				values[k.Path] = list
			}
		}
	}
}

// located returns the path of a reference in the cache, or the text itself if it is not a reference or
// not found.
func (r *Resolved) located(key, text string, part hub.Part, find func(hub.Ref) (hub.Found, error)) string {
	if !hub.IsRef(text) {
		return text
	}
	ref, err := hub.ParseRef(text, part)
	if err != nil { // a check reports it
		return text
	}
	x := Remote{Key: key, Ref: ref}
	if find == nil {
		x.Err = &hub.MissingError{Ref: ref}
	} else if x.Found, x.Err = find(ref); x.Err == nil {
		text = x.Found.Path
	}
	r.Remotes = append(r.Remotes, x)
	return text
}

// nameRemotes fills in the names that stand for the paths in the cache.
func (r *Resolved) nameRemotes() {
	for _, x := range r.Remotes {
		if x.Key == "model.base" {
			r.Run.Model.Repo = x.Ref.Name
		}
	}
}

// MissingRefs lists the references that are not in the cache. Others that cannot be used
// are not among them.
func (r *Resolved) MissingRefs() (list []hub.Ref) {
	for _, x := range r.Remotes {
		if m, ok := x.Err.(*hub.MissingError); ok && !m.Never {
			list = append(list, x.Ref)
		}
	}
	return list
}

// RemoteErrors are the references that cannot be used, each an error at its key.
func (r *Resolved) RemoteErrors() (errs Errors) {
	for _, x := range r.Remotes {
		if x.Err == nil {
			continue
		}
		help := ""
		if h, ok := x.Err.(interface{ Hint() string }); ok {
			help = h.Hint()
		}
		errs = append(errs, r.ErrorAt(x.Key, CodeData, x.Err.Error(), help))
	}
	return errs
}

// Name is the name of the pretrained model for people and for other programs: its
// repository's on the hub, or the path of its folder.
func (m *Model) Name() string {
	if m.Repo != "" {
		return m.Repo
	}
	return m.Base
}

// Title names the model of a run for people: a pretrained one by its name, a new one by its layers and width.
func (m *Model) Title() string {
	if m.Init == "pretrained" {
		return m.Name()
	}
	return fmt.Sprintf("%dx%d", m.Arch.Layers, m.Arch.Width)
}

// remoteChecks refuse malformed references.
func remoteChecks() (list []check) {
	var keys []string
	for key := range remoteKeys() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		part := remoteKeys()[key]
		list = append(list, check{[]string{key}, func(r *Run) (string, string) {
			for _, text := range remoteValues(r, key) {
				if !hub.IsRef(text) {
					continue
				}
				if _, err := hub.ParseRef(text, part); err != nil {
					return fmt.Sprintf("%s: %v", key, err), "write " + remoteForm(part)
				}
			}
			return "", ""
		}})
	}
	return list
}

func remoteForm(part hub.Part) string {
	if part == hub.Data {
		return "hub:ORG/NAME/FILE@REVISION, such as hub:openai/gsm8k/main/train-00000-of-00001.parquet@main"
	}
	return "hub:ORG/NAME@REVISION, such as hub:Qwen/Qwen2.5-0.5B@main"
}

// remoteValues are the values of one of the remote keys.
func remoteValues(r *Run, key string) []string {
	if list, ok := map[string][]string{"data.train.more": r.Data.Train.More, "data.val.more": r.Data.Val.More,
		"data.test.more": r.Data.Test.More, "algo.teachers": r.Algo.Teachers}[key]; ok {
		return list
	}
	return []string{map[string]string{
		"model.base": r.Model.Base, "model.adapter": r.Model.Adapter, "reward.weights": r.Reward.Weights,
		"algo.reference": r.Algo.Reference, "algo.prime.model": r.Algo.Prime.Model,
		ScorerKey:        r.Eval.Final.Scorer.Weights,
		"tokenizer.path": r.Tokenizer.Path, "data.train.source": r.Data.Train.Source,
		"data.val.source": r.Data.Val.Source, "data.test.source": r.Data.Test.Source,
		"sft.source": r.SFT.Source, "prefer.source": r.Prefer.Source,
		"reward_model.source": r.RewardModel.Source, "reward_model.val": r.RewardModel.Val,
	}[key]}
}
