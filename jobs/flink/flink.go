package flink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/sketch"
)

// Job says where pairs are to be found and which.
type Job struct {
	// Gateway is the address of the SQL gateway, such as http://flink:8083. A name and a password in it are sent along.
	Gateway string
	// Shared is a directory that this process and all taskmanagers see. SharedURI is what they call it, where that is another
	// name: file:///mnt/shared; empty is the same path.
	Shared, SharedURI string
	// Parallelism is in how many parts the work is cut; 0 leaves it to Flink's configuration.
	Parallelism int
	// Bands and Rows are how the sketches are cut: see [sketch.Sketch.AppendBands].
	Bands, Rows int
	// Threshold is the least agreement of a pair. At 0 all candidates are yielded, and so they are of sketches whose agreement is
	// not a share of equal positions.
	Threshold float64
	// Memory is for telling which keys come at least twice, in bytes. With little of it more is written than needed.
	Memory int64
	// Log, if not nil, gets a line for each step.
	Log *slog.Logger
}

// Restarts of a job after the loss of a taskmanager, and of whatever else fails, and how long Flink waits before each. One loss can take
// several, until Flink has noticed what else went with it: within some 20 seconds, as it is set by default.
const (
	restarts     = 30
	restartPause = 2 * time.Second
)

// Seek finds the pairs among texts. Their fingerprints are their numbers: below 2^63, each of them once. A
// sketch is looked at before the next one is asked for. It goes through texts twice. It returns when the job has ended. The pairs are to be iterated once,
// which removes the directory of the run; each comes once, the lower number first.
func (j *Job) Seek(ctx context.Context, texts iter.Seq2[*sketch.Sketch, error]) (iter.Seq2[[2]uint64, error], error) {
	g, err := newGateway(j.Gateway)
	if err != nil {
		return nil, err
	}
	r := &run{Job: *j, g: g, name: "neardup-" + strings.ToLower(rand.Text()[:10])}
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	if err := r.seek(ctx, texts); err != nil {
		return nil, errors.Join(fmt.Errorf("job %s: %w", r.name, err), r.clear())
	}
	return func(yield func([2]uint64, error) bool) {
		defer func() {
			if err := r.clear(); err != nil { // the pairs are good all the same
				r.Log.Warn("files are left", "job", r.name, "error", err)
			}
		}()
		pairsIn(r.pairs)(yield)
	}, nil
}

// run is one run of a job.
type run struct {
	Job
	g    *gateway
	name string

	dir, texts, pairs string // as this process sees them
	mode              fs.FileMode
	location          string // of dir, as Flink sees it
	shape             shape
}

func (r *run) seek(ctx context.Context, texts iter.Seq2[*sketch.Sketch, error]) error {
	if err := r.lay(); err != nil {
		return err
	}
	if err := r.probe(ctx); err != nil {
		return err
	}
	start := time.Now()
	shared, err := r.repeated(texts)
	if err != nil {
		return err
	}
	r.Log.Info("keys counted", "job", r.name, "seconds", seconds(start))
	start = time.Now()
	count, err := r.export(texts, shared)
	if err != nil {
		return fmt.Errorf("write the texts to %s: %w", r.texts, err)
	}
	r.Log.Info("texts written", "job", r.name, "texts", count.texts, "written", count.written, "keys", count.keys,
		"megabytes", count.bytes>>20, "seconds", seconds(start))
	if count.written == 0 {
		return nil
	}
	start = time.Now()
	r.Log.Info("job submitted", "job", r.name, "gateway", r.g.base.Redacted())
	if err := r.work(ctx, r.properties(), r.statements(r.location+"/texts", r.location+"/pairs")); err != nil {
		return err
	}
	r.Log.Info("job finished", "job", r.name, "seconds", seconds(start))
	return nil
}

func seconds(since time.Time) float64 {
	return time.Since(since).Round(100 * time.Millisecond).Seconds()
}

// lay makes the directories of the run. They have the permissions of the shared one, since Flink's user may be another.
func (r *run) lay() error {
	info, err := os.Stat(r.Shared)
	if err == nil && !info.IsDir() {
		err = errors.New("is no directory")
	}
	if err != nil {
		return fmt.Errorf("shared: %q: %w: name a directory that Flink's taskmanagers see too", r.Shared, err)
	}
	shared, err := filepath.Abs(r.Shared)
	if err != nil {
		return err
	}
	r.location = strings.TrimRight(r.SharedURI, "/") + "/" + r.name
	if r.SharedURI == "" {
		r.location = (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(shared, r.name))}).String()
	}
	dir := filepath.Join(shared, r.name)
	r.texts, r.pairs = filepath.Join(dir, "texts"), filepath.Join(dir, "pairs")
	r.mode = info.Mode().Perm()
	for _, d := range []string{dir, r.texts, r.pairs, filepath.Join(dir, "given"), filepath.Join(dir, "taken")} {
		if err := os.Mkdir(d, r.mode); err != nil {
			return fmt.Errorf("shared: %w", err)
		}
		r.dir = dir // from now on there is something to clear
		if err := os.Chmod(d, r.mode); err != nil {
			return fmt.Errorf("shared: %w", err)
		}
	}
	return nil
}

// probe has Flink copy a word from a file to another, before much is written: within seconds that shows whether the directory is
// shared.
func (r *run) probe(ctx context.Context) error {
	given := filepath.Join(r.dir, "given", "word.csv")
	if err := os.WriteFile(given, []byte(r.name+"\n"), r.mode&^0o111); err != nil {
		return err
	}
	if err := os.Chmod(given, r.mode&^0o111); err != nil {
		return err
	}
	properties := r.properties()
	properties["restart-strategy.type"] = "none"
	err := r.work(ctx, properties, []string{
		"CREATE TEMPORARY TABLE given (word STRING) WITH (" + onFiles(r.location+"/given") + ")",
		"CREATE TEMPORARY TABLE taken (word STRING) WITH (" + onFiles(r.location+"/taken") + ")",
		"INSERT INTO taken SELECT word FROM given",
	})
	if err != nil {
		return fmt.Errorf("try out whether Flink sees %s: %w", r.dir, err)
	}
	files, err := committed(filepath.Join(r.dir, "taken"))
	if err != nil {
		return err
	}
	for _, file := range files {
		word, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%w: this user must be able to read what Flink's user writes: let both be in the group of --shared", err)
		}
		if strings.TrimSpace(string(word)) == r.name {
			return nil
		}
	}
	return fmt.Errorf("what Flink wrote to %s/taken is not in %s/taken here: --shared must be one directory, on every taskmanager "+
		"and here", r.location, r.dir)
}

// clear removes what the run has laid down, if anything.
func (r *run) clear() error {
	if err := os.RemoveAll(r.dir); err != nil {
		return fmt.Errorf("remove the files of a run that is over, which may be done by hand: %w", err)
	}
	return nil
}

// work runs statements in a session, the last of which is a job. Where that is not ended in good order it is stopped.
func (r *run) work(ctx context.Context, properties map[string]string, statements []string) error {
	s, err := r.g.open(ctx, r.name, properties)
	if err != nil {
		return err
	}
	late := context.WithoutCancel(ctx)
	defer func() { _ = s.close(late) }() // the gateway closes it by itself after some minutes
	job := len(statements) - 1
	for _, statement := range statements[:job] {
		if _, err := s.execute(ctx, statement); err != nil {
			return err
		}
	}
	if _, err = s.execute(ctx, statements[job]); err == nil {
		return nil
	}
	if stopped := r.g.stop(late, r.name); stopped != nil {
		r.Log.Warn("the job may still run on Flink", "job", r.name, "error", stopped)
	}
	return err
}

// properties are those of the session.
func (r *run) properties() map[string]string {
	list := map[string]string{
		"execution.runtime-mode": "batch",
		"table.dml-sync":         "true", // a statement ends with its job
		"pipeline.name":          r.name,
		"pipeline.object-reuse":  "true",
		// The candidates, of which Flink can't know how many there are, would go to every slot whole.
		"table.optimizer.join.broadcast-threshold": "-1",
		"restart-strategy.type":                    "fixed-delay",
		"restart-strategy.fixed-delay.attempts":    strconv.Itoa(restarts),
		"restart-strategy.fixed-delay.delay":       restartPause.String(),
	}
	if r.Parallelism > 0 {
		list["parallelism.default"] = strconv.Itoa(r.Parallelism)
	}
	return list
}
