package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"exp/experiments/store"
)

// bigStore makes a store of many runs from the rows of one small run; the first run has a
// series of a million points.
func bigStore(b *testing.B, runs int, points int64) (db *store.DB, long store.Run) {
	b.Helper()
	small := newStudy(b)
	run, at, _ := small.begin("template", "flowrl", 0, 2)
	small.steps(run, at.ID, 1, 2, 0.2)
	small.must(small.db.SetHeadline(b.Context(), run.ID, []store.Headline{{Name: "pass@1", Value: 0.4}, {Name: "pass@16", Value: 0.7}}))
	small.must(small.db.EndAttempt(b.Context(), at.ID, store.Done, 0))
	var tables []store.PortableRows
	small.must(small.db.ExportRows(b.Context(), []int64{run.ID}, func(p store.PortableRows) error {
		rows, err := grown(p, runs, points)
		tables = append(tables, rows)
		return err
	}))
	big := newStudy(b)
	next := 0
	_, err := big.db.ImportRows(b.Context(), func() (store.PortableRows, error) {
		if next == len(tables) {
			return store.PortableRows{}, io.EOF
		}
		next++
		return tables[next-1], nil
	})
	big.must(err)
	long, err = big.db.Run(b.Context(), digestOf("rid 0"))
	big.must(err)
	return big.db, long
}

// grown reads a table and multiplies the runs and the points of the first series.
func grown(p store.PortableRows, runs int, points int64) (store.PortableRows, error) {
	var list [][]any
	for {
		row, err := p.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return p, err
		}
		list = append(list, slices.Clone(row))
	}
	column := func(name string) int {
		return slices.IndexFunc(p.Columns, func(c store.Column) bool { return c.Name == name })
	}
	made, n := func(int) []any { return nil }, 0
	switch p.Table {
	case "runs":
		n = runs
		made = func(i int) []any {
			row := slices.Clone(list[0])
			rid, xid := digestOf(fmt.Sprint("rid ", i)), digestOf(fmt.Sprint("xid ", i/5))
			row[column("rid")], row[column("xid")] = rid[:], xid[:]
			row[column("name")], row[column("seed")] = fmt.Sprintf("experiment-%d", i/5), int64(i%5)
			if i == 0 {
				row[column("steps")] = points
			}
			row[column("status")], row[column("created")] = "done", now.UnixMilli()-int64(i)*60_000
			return row
		}
	case "series":
		for _, row := range list {
			row[column("last_step")] = points
		}
		n, made = len(list), func(i int) []any { return slices.Clone(list[i]) }
	case "metrics":
		n = int(points)
		made = func(i int) []any {
			row := slices.Clone(list[0])
			row[column("step")], row[column("value")] = int64(i+1), 1/float64(i+1)
			return row
		}
	default:
		n, made = len(list), func(i int) []any { return slices.Clone(list[i]) }
	}
	at := 0
	p.Next = func() ([]any, error) {
		if at == n {
			return nil, io.EOF
		}
		at++
		return made(at - 1), nil
	}
	return p, nil
}

// Pages of a store of 10,000 runs. The goals are 200 ms for the first page, the list,
// and 300 ms for a curve of a million points.
func BenchmarkPages(b *testing.B) {
	db, long := bigStore(b, 10_000, 1_000_000)
	series, err := db.Series(context.Background(), long.ID, "")
	if err != nil {
		b.Fatal(err)
	}
	server, err := New(Options{DB: db, Token: "secret"})
	if err != nil {
		b.Fatal(err)
	}
	for _, page := range []struct{ name, path string }{
		{"list", "/"},
		{"filter", "/?F=metric.actor/entropy+%3E+0.1+or+seed+%3D+3&sort=-pass@1"},
		{"group", "/?group=xid"},
		{"curve", "/points?sel=" + long.RID.String() + "&metric=" + series[0].Name},
		{"zoom", "/points?sel=" + long.RID.String() + "&from=400000&to=500000&metric=" + series[0].Name},
		{"run", "/run/" + long.RID.String() + "?metric=" + series[0].Name},
	} {
		b.Run("page="+page.name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				server.spans.kept = nil
				r := httptest.NewRequest("GET", "http://localhost"+page.path, nil)
				r.AddCookie(&http.Cookie{Name: server.guard.cookie, Value: "secret"})
				w := httptest.NewRecorder()
				server.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatalf("%d: %s", w.Code, w.Body)
				}
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size), "B/page")
		})
	}
}
