package checkpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/model"
)

// PackOptions say how Pack writes a folder.
type PackOptions struct {
	// DType is the type of written floating-point tensors: F32, BF16 or F16,
	// rounded to nearest, ties to even. Empty keeps every tensor's own.
	DType DType
	// ShardBytes limits a file's bytes of tensors; 0 means 5 GB.
	ShardBytes int64
	// Replace swaps out an existing target, which is otherwise an error.
	Replace bool
	// Progress, if set, is called now and then with the bytes of weights written so far, by
	// one goroutine at a time.
	Progress func(done, total int64)
}

// Packed describes a folder that Pack wrote.
type Packed struct {
	Container string // the source's
	Source    string // where its weights were found
	Ranks     int    // how many ranks wrote them; 0 if not several
	Class     string // of config.json
	DType     DType  // of most elements
	Tensors   int
	Files     []DescribedFile // by name
	Notes     []string        // what was left out or put elsewhere, for people
}

// Pack writes the weights of c as Hugging Face folder dir:
//
//	config.json             c.Texts's, with the types and positions of the weights written
//	model.safetensors       all tensors, without a tied head; or shards and their index
//	proj_z.safetensors      FlowRL's log Z head, if there is one
//	value_head.safetensors  the value head of a language model, if there is one
//	generation_config.json, tokenizer and chat templates, byte for byte
//
// The head of a class that scores or classifies stays in model.safetensors, where
// transformers expects it. Copies that several files hold are compared. If config.json
// describes a supported language model, the tensors must be its own; other models are
// copied unchanged. A single file without config.json becomes a folder of weights alone.
// Weights go from files to files in pieces. On any error, and if ctx ends, dir is unchanged.
func Pack(ctx context.Context, c *Container, dir string, o PackOptions) (*Packed, error) {
	return system().pack(ctx, c, dir, o)
}

func (d disk) pack(ctx context.Context, c *Container, dir string, o PackOptions) (*Packed, error) {
	info, err := os.Stat(c.Path)
	if err != nil {
		return nil, fileError("merge", c.Path, err)
	}
	if c.Texts == "" && info.IsDir() && c.format != megatronRanks {
		return nil, &Error{Op: "merge", Path: c.Path, Err: errors.New("no config.json is with the weights"),
			Hint: "name a folder with the model's config.json and tokenizer: --hf-config DIR"}
	}
	if _, err := os.Lstat(dir); err == nil && !o.Replace {
		return nil, taken("merge", dir)
	}
	var raw []byte
	if c.Texts != "" {
		if raw, err = readSmall(filepath.Join(c.Texts, configFile), maxConfig); err != nil {
			return nil, err
		}
	}
	t, err := c.openWhole()
	if err != nil {
		return nil, err
	}
	if raw == nil {
		if raw, err = c.madeConfig(t); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	p := &packer{d: d, c: c, t: t, o: o, config: raw}
	out, err := p.run(ctx, dir)
	return out, errors.Join(err, t.Close())
}

// packer writes one folder.
type packer struct {
	d      disk
	c      *Container
	t      *Tensors
	o      PackOptions
	config []byte // the source's config.json; nil if there is none
	folder string // of the texts in the target
	out    Packed
}

func (p *packer) run(ctx context.Context, dir string) (*Packed, error) {
	p.out = Packed{Container: p.c.Kind, Source: p.c.Path, Ranks: p.c.Ranks}
	if p.config != nil {
		p.out.Class = classOf(p.config)
	}
	if err := p.t.agree(); err != nil {
		return nil, err
	}
	if err := p.reclassify(); err != nil {
		return nil, mergeError(dir, err)
	}
	plain, heads, err := p.divide()
	if err != nil {
		return nil, err
	}
	config, err := p.patched(plain)
	if err != nil {
		return nil, mergeError(dir, err)
	}
	files := packFiles(plain, heads, cmp.Or(p.o.ShardBytes, shardBytes))
	s, err := p.d.stage("merge", dir)
	if err != nil {
		return nil, err
	}
	defer s.discard()
	if err := p.texts(s, config, files); err != nil {
		return nil, err
	}
	if err := p.weights(ctx, s, files); err != nil {
		return nil, err
	}
	if err := s.publish(p.o.Replace); err != nil {
		return nil, err
	}
	slices.SortFunc(p.out.Files, func(a, b DescribedFile) int { return strings.Compare(a.Name, b.Name) })
	return &p.out, nil
}

// reclassify gives a critic the class that it is: trainers keep the config.json of the
// language model that it began as.
func (p *packer) reclassify() error {
	score, scores := p.t.where["score.weight"]
	if _, speaks := p.t.where[lmHead]; speaks || !scores || len(score.Shape) != 2 {
		return nil
	}
	base, ok := strings.CutSuffix(p.out.Class, causal)
	if !ok {
		return nil
	}
	class := base + classifier
	if _, biased := p.t.where["score.bias"]; biased { // as transformers' classes have it
		class = base + "ForTokenClassification"
	}
	labels, ids := map[string]string{}, map[string]int{}
	for i := range min(score.Shape[0], maxLabels) {
		name := fmt.Sprintf("LABEL_%d", i)
		labels[fmt.Sprint(i)], ids[name] = name, i
	}
	raw, err := setKeys(p.config, map[string]any{"architectures": []string{class}, "id2label": labels,
		"label2id": ids})
	if err != nil {
		return err
	}
	p.note("it scores and has no output projection, so its class is %s, not %s", class, p.out.Class)
	p.config, p.out.Class = raw, class
	return nil
}

// maxLabels bounds the labels that a config.json lists; a critic has one.
const maxLabels = 1000

// note adds a line for people.
func (p *packer) note(format string, args ...any) {
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(format, args...))
}

// divide returns the model's tensors, without a tied output projection, and the tensors of
// auxiliary heads by file.
func (p *packer) divide() (plain []packedTensor, heads map[string][]packedTensor, err error) {
	c, notKnown := ParseConfig(filepath.Join(p.c.Texts, configFile), p.config)
	tied := c.TieEmbeddings
	if notKnown != nil {
		tied = p.saysTied()
	}
	if err := p.t.tied(model.Config{TieEmbeddings: tied}); err != nil {
		return nil, nil, err
	}
	_, embedded := p.t.where[embedding]
	heads = map[string][]packedTensor{}
	model := &Tensors{path: p.t.path, where: map[string]place{}}
	for _, x := range p.t.List() {
		from := p.t.where[x.Name]
		to := packedTensor{from: from, as: p.typeOf(x)}
		file := p.headFile(x.Name)
		switch {
		case file != "":
			heads[file] = append(heads[file], to)
		case x.Name == lmHead && tied && embedded:
			p.note("%s equals %s and is left out: the model ties them", lmHead, embedding)
			p.out.Tensors--
		default:
			plain = append(plain, to)
			model.where[x.Name] = from
		}
		p.out.Tensors++
	}
	for _, name := range sortedKeys(heads) {
		p.note("%s of an auxiliary head: in %s", count(len(heads[name]), "tensor"), name)
	}
	if notKnown == nil {
		if err := model.Fits(c); err != nil {
			return nil, nil, err
		}
	}
	if notKnown == nil && (c.Experts.Bias || c.Experts.Beside) {
		fused := fuseExperts(plain, packedTensor.source, fusedPacked)
		p.out.Tensors += len(fused) - len(plain)
		plain = fused
	}
	if notKnown == nil {
		published := publish(plain, packedTensor.source, stackedPacked, turnedPacked, c)
		p.out.Tensors += len(published) - len(plain)
		plain = published
	}
	return plain, heads, nil
}

// saysTied reports what config.json says about tied embeddings.
func (p *packer) saysTied() bool {
	r := settings{}
	return json.Unmarshal(p.config, &r.values) == nil && r.flag("tie_word_embeddings", false)
}

// typeOf returns the written type of a tensor.
func (p *packer) typeOf(x Tensor) DType {
	if p.o.DType != "" && x.DType.convertible() && !(model.Tensor{Name: x.Name}).Constant() {
		return p.o.DType
	}
	return x.DType
}

// headFile returns the file of an auxiliary head's tensor; "" for a tensor of the model.
func (p *packer) headFile(name string) string {
	head := headOf(name)
	if head == trlHead {
		head = "score"
	}
	if head == "score" && !strings.HasSuffix(p.out.Class, causal) {
		return ""
	}
	return headFiles()[head]
}

// trlHead begins the value head's tensors of TRL's models.
const trlHead = "v_head"

// patched returns config.json for the written weights.
func (p *packer) patched(plain []packedTensor) ([]byte, error) {
	counts := map[DType]int{}
	p.out.DType = F32
	for _, x := range plain {
		if counts[x.as] += x.from.Len(); counts[x.as] > counts[p.out.DType] {
			p.out.DType = x.as
		}
	}
	if p.config == nil {
		return nil, nil
	}
	if c, err := ParseConfig(configFile, p.config); err == nil {
		return patchConfig(p.config, c, p.out.DType, nil)
	}
	r := settings{}
	left := slices.IndexFunc(plain, func(x packedTensor) bool { return x.as == e4m3 })
	if json.Unmarshal(p.config, &r.values) == nil && r.widens() && left >= 0 {
		return nil, &Error{Op: "merge", Path: p.t.path, Tensor: plain[left].from.Name, Err: errors.New("is in FP8 " +
			"without scales that can be read, while other weights become BF16: no config.json describes both")}
	}
	name := torchName(p.out.DType)
	if name == "" {
		return p.config, nil
	}
	return setKeys(unquantized(p.config), map[string]any{"dtype": name, "torch_dtype": name})
}

// packedFile is a file of weights to be written.
type packedFile struct {
	name    string
	tensors []packedTensor // in file order
}

// packFiles distributes tensors over files.
func packFiles(plain []packedTensor, heads map[string][]packedTensor, limit int64) []packedFile {
	var files []packedFile
	add := func(list []packedTensor, shards func([]Source) []shard) {
		byName := map[string]packedTensor{}
		var sources []Source
		for _, x := range list {
			byName[x.from.Name] = x
			sources = append(sources, Source{Tensor: x.tensor()})
		}
		for _, s := range shards(sources) {
			f := packedFile{name: s.name}
			for _, x := range s.tensors {
				f.tensors = append(f.tensors, byName[x.Name])
			}
			files = append(files, f)
		}
	}
	add(plain, func(list []Source) []shard { return cutShards(list, limit) })
	for _, name := range sortedKeys(heads) {
		add(heads[name], func(list []Source) []shard { return []shard{{name, inFileOrder(list)}} })
	}
	return files
}

// texts writes everything but the weights.
func (p *packer) texts(s *staging, config []byte, files []packedFile) error {
	contents := map[string]func(w io.Writer) error{}
	bytesOf := func(b []byte) func(w io.Writer) error {
		return func(w io.Writer) error { _, err := w.Write(b); return err }
	}
	if config != nil {
		contents[configFile] = bytesOf(config)
	}
	where, total, shards := map[string]string{}, int64(0), 0
	for _, f := range files {
		if strings.HasPrefix(f.name, "model-") {
			shards++
			for _, x := range f.tensors {
				where[x.from.Name] = f.name
				total += x.tensor().Bytes()
			}
		}
	}
	if shards > 0 {
		contents[indexFile] = bytesOf(indented(map[string]any{"metadata": map[string]any{"total_size": total},
			"weight_map": where}))
	}
	kept, err := p.keptTexts()
	if err != nil {
		return err
	}
	for _, name := range kept {
		contents[name] = func(w io.Writer) error {
			f, err := openRegular(filepath.Join(p.c.Texts, name))
			if err != nil {
				return err
			}
			_, err = io.Copy(w, f)
			return errors.Join(err, f.Close())
		}
	}
	switch {
	case config == nil:
		p.note("no config.json is with the file, so the folder holds weights alone; --hf-config DIR adds one")
	case p.c.Texts == "":
		p.note("config.json is made from the checkpoint's arguments; the checkpoint has no tokenizer: " +
			"--hf-config DIR adds one")
	case len(kept) == 0:
		p.note("no tokenizer and no generation_config.json were in %s to be copied", p.c.Texts)
	}
	for _, name := range sortedKeys(contents) {
		info, err := s.write(filepath.Join(p.folder, name), contents[name])
		if err != nil {
			return err
		}
		p.out.Files = append(p.out.Files, DescribedFile{Name: info.Name, Bytes: info.Bytes})
	}
	return nil
}

// keptTexts returns the names of the files next to config.json that belong to a model: its
// tokenizer, chat templates, generation settings, and the code of a custom class.
func (p *packer) keptTexts() ([]string, error) {
	dir := p.c.Texts
	if dir == "" {
		return nil, nil
	}
	patterns := []string{"generation_config.json", "tokenizer*.json", "tokenizer*.model", "special_tokens_map.json",
		"added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "spiece.model", "*.tiktoken", "chat_template.*",
		"preprocessor_config.json", "processor_config.json", "configuration_*.py", "modeling_*.py",
		"tokenization_*.py"}
	var list []string
	for _, folder := range []string{"", keptFolder} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil && folder == "" {
			return nil, fileError("read", dir, err)
		}
		for _, e := range entries {
			name := e.Name()
			keep := slices.ContainsFunc(patterns, func(p string) bool { ok, _ := filepath.Match(p, name); return ok })
			if folder != "" {
				keep = strings.HasSuffix(name, ".jinja")
			}
			info, err := os.Stat(filepath.Join(dir, folder, name))
			if keep && err == nil && info.Mode().IsRegular() {
				list = append(list, filepath.Join(folder, name))
			}
		}
	}
	return list, nil
}
