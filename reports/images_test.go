package reports

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// A suite's problems bring their images along, and a report shows them.
func TestImagesOfSuites(t *testing.T) {
	db, err := store.Open(t.TempDir(), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	must(png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 20))))
	digest := ident.Sum(b.Bytes()).String()
	line := func(format string) []byte {
		return fmt.Appendf(nil, `{"id":"a","prompt":"Look.","images":[{"digest":%q,"width":30,"height":20,"format":%q,"encoded":%q}]}`+"\n",
			digest, format, base64.StdEncoding.EncodeToString(b.Bytes()))
	}
	problems, err := db.Blobs.PutBytes(line("png"))
	must(err)
	suite := store.Suite{Digest: problems, Name: "shapes", Scorer: "exp", Items: []store.Item{{ID: "a"}}}
	id, err := db.AddSuite(ctx, suite, int64(len(line("png"))))
	must(err)
	run, _, err := db.EnsureRun(ctx, store.NewRun{RID: ident.Sum([]byte("rid")), XID: ident.Sum([]byte("xid")), Name: "pictures", Task: "math",
		Algo: "none", Model: "m", Numerics: "cpu", Code: ident.Sum([]byte("code")), Config: store.Config{Digest: ident.Sum([]byte("c")), JSON: "{}", Source: "name: x\n"}})
	must(err)
	at, err := db.BeginAttempt(ctx, store.Attempt{Run: run.ID, Kind: store.AttemptRun, Host: "host", Device: "cpu", Build: "test", Env: json.RawMessage("{}")})
	must(err)
	var stages [2]store.Stage
	for i, kind := range []string{"eval.gen", "eval.score"} {
		stages[i], err = db.BeginStage(ctx, store.Stage{SID: ident.Sum([]byte(kind)), Run: run.ID, Attempt: at.ID, Kind: kind, Label: "shapes", Code: ident.Sum([]byte("code"))})
		must(err)
	}
	must(db.FinishStage(ctx, stages[1].ID, nil, store.StageResult{Result: []byte("{}")}, []store.Eval{{StageGen: stages[0].ID, Suite: id,
		Protocol: ident.Sum([]byte("protocol")), N: 1, Metric: "pass@1", Value: 1, Items: 1, Clusters: 1}}))

	prompt := "See <image 30×20 sha256:" + digest[:8] + "> and <image 1×1 sha256:00000000>."
	if got := ImagesIn(prompt); len(got) != 2 || got[0] != (PromptImage{digest[:8], "image 30×20 sha256:" + digest[:8], "30", "20"}) {
		t.Errorf("images %+v", got)
	}
	list, err := (&source{db: db}).embed(ctx, run, prompt)
	if err != nil || len(list) != 1 || !strings.HasPrefix(string(list[0].Source), "data:image/png;base64,iVBOR") {
		t.Errorf("embedded %+v, %v", list, err)
	}
	brought, err := db.Blobs.PutBytes([]byte("a GIF")) // by an agent
	must(err)
	must(db.AddImages(ctx, run.ID, stages[0].ID, []store.Image{{Digest: brought, Format: "gif"}}))
	must(db.AddImages(ctx, run.ID, stages[0].ID, []store.Image{{Digest: brought, Format: "gif"}}))
	if b, format, err := ReadImage(ctx, db, run, brought.String()[:8]); string(b) != "a GIF" || format != "gif" || err != nil {
		t.Errorf("%q, %q, %v", b, format, err)
	}
	for _, digits := range []string{"00000000", brought.String()[:7], brought.String()[:7] + "%"} {
		if b, _, err := ReadImage(ctx, db, run, digits); b != nil || err != nil {
			t.Errorf("%s: %q, %v", digits, b, err)
		}
	}
	// A run that reuses the stage shows its images, and another run does not.
	must(db.FinishStage(ctx, stages[0].ID, nil, store.StageResult{Result: []byte("{}")}, nil))
	for i, want := range []string{"", "a GIF"} {
		again, _, err := db.EnsureRun(ctx, store.NewRun{RID: ident.Sum(fmt.Append(nil, "rid", i)), XID: ident.Sum([]byte("xid")), Name: "pictures", Task: "math",
			Algo: "none", Model: "m", Numerics: "cpu", Code: ident.Sum([]byte("code")), Config: store.Config{Digest: ident.Sum([]byte("c")), JSON: "{}", Source: "name: x\n"}})
		must(err)
		if i == 1 {
			hit, err := db.Hit(ctx, stages[0].SID)
			must(err)
			_, err = db.ReuseStage(ctx, store.Stage{SID: stages[0].SID, Run: again.ID, Kind: "eval.gen", Label: "shapes", Code: ident.Sum([]byte("code"))}, hit)
			must(err)
		}
		if b, _, err := ReadImage(ctx, db, again, brought.String()[:8]); string(b) != want || err != nil {
			t.Errorf("run %d: %q, %v; want %q", i, b, err, want)
		}
	}
	if files, err := db.Artifacts(ctx, run.ID); len(files) > 0 || err != nil {
		t.Errorf("%+v, %v", files, err)
	}
	if b, _, err := fromProblems(line("svg"), digest[:8]); b != nil || err != nil {
		t.Errorf("an image that may have scripts: %d bytes, %v", len(b), err)
	}
}
