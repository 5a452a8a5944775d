package flink

import (
	"cmp"
	"context"
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
	"syscall"
	"time"

	"github.com/neardup/sidecar/internal/terminal"
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

	run *run // that has found the pairs
}

// Restarts of a job after the loss of a taskmanager, and of whatever else fails, and how long Flink waits before each. One loss can take
// several, until Flink has noticed what else went with it: within some 20 seconds, as it is set by default.
const (
	restarts     = 30
	restartPause = 2 * time.Second
)

// Seek finds the pairs among texts. Their fingerprints are their numbers: below 2^63, each of them once. A
// sketch is looked at before the next one is asked for. It goes through texts twice. It returns when the job has ended. Each pair
// comes once, the lower number first.
//
// What is done stays until [Job.Finish]. Where a run was broken off, the next one with the same texts in the same order goes on from there.
func (j *Job) Seek(ctx context.Context, texts iter.Seq2[*sketch.Sketch, error]) (iter.Seq2[[2]uint64, error], error) {
	g, err := newGateway(j.Gateway)
	if err != nil {
		return nil, err
	}
	r := &run{Job: *j, g: g}
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	start := time.Now()
	shared, err := r.repeated(texts)
	if err != nil {
		return nil, err
	}
	r.Log.Info("keys counted", "job", r.name, "seconds", seconds(start))
	if err := r.lay(); err != nil {
		return nil, errors.Join(err, r.leave())
	}
	if err := r.seek(ctx, texts, shared); err != nil {
		if ctx.Err() != nil {
			if stopped := g.stop(context.WithoutCancel(ctx), r.name); stopped != nil {
				r.Log.Warn("the job may still run on Flink", "job", r.name, "error", stopped)
			}
		}
		return nil, errors.Join(fmt.Errorf("job %s: %w", r.name, err), r.leave())
	}
	j.run = r
	return pairsIn(r.pairs), nil
}

// Finish removes what Seek has left for a run to go on from. The pairs can't be read afterwards.
func (j *Job) Finish() {
	if j.run == nil {
		return
	}
	if err := j.run.clear(); err != nil { // the pairs were good all the same
		j.run.Log.Warn("files are left", "job", j.run.name, "error", err)
	}
}

// run is one run of a job.
type run struct {
	Job
	g    *gateway
	name string // made of what the job is about

	dir, texts, pairs string // as this process sees them
	lock              *os.File
	mode              fs.FileMode
	location          string // of dir, as Flink sees it
	shape             shape
}

// seek does what is left to do.
func (r *run) seek(ctx context.Context, texts iter.Seq2[*sketch.Sketch, error], shared *filter) error {
	if r.finished() {
		r.Log.Info("pairs found by an earlier run", "job", r.name)
		return nil
	}
	running, err := r.g.running(ctx, r.name)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		r.Log.Info("job of an earlier run goes on", "job", r.name)
		if err := r.await(ctx); err != nil || r.finished() {
			return err
		}
	}
	if err := r.probe(ctx); err != nil {
		return err
	}
	start := time.Now()
	count, err := r.export(texts, shared)
	if err != nil {
		return fmt.Errorf("write the texts to %s: %w", r.texts, err)
	}
	r.Log.Info("texts written", "job", r.name, "texts", count.texts, "written", count.written, "keys", count.keys,
		"megabytes", count.bytes>>20, "files_of_earlier_run", count.there, "seconds", seconds(start))
	if count.written == 0 && count.there == 0 {
		return nil
	}
	start = time.Now()
	r.Log.Info("job submitted", "job", r.name, "gateway", r.g.base.Redacted())
	if err := r.submit(ctx); err != nil {
		return err
	}
	r.Log.Info("job finished", "job", r.name, "seconds", seconds(start))
	return nil
}

// submit runs the job. A job outlives the gateway that was given it.
func (r *run) submit(ctx context.Context) error {
	err := r.empty(r.pairs) // what a job has left that failed while it moved its files there
	if err == nil {
		err = r.work(ctx, r.properties(), r.statements(r.location+"/texts", r.location+"/pairs"))
	}
	if err != nil && (r.await(ctx) != nil || !r.finished()) {
		return err
	}
	if !r.finished() {
		return fmt.Errorf("the job has ended, but %s has no file %s", r.pairs, successFile)
	}
	return nil
}

// finished reports whether a job has put all its pairs where they are read.
func (r *run) finished() bool {
	_, err := os.Stat(filepath.Join(r.pairs, successFile))
	return err == nil
}

// await waits until no job of the name runs. A gateway that can't be reached, or has forgotten the session, is asked again for a while.
func (r *run) await(ctx context.Context) error {
	for heard := time.Now(); ; {
		running, err := r.g.running(ctx, r.name)
		if err == nil {
			heard = time.Now()
		}
		if err == nil && len(running) == 0 || err != nil && time.Since(heard) > silentLimit {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lastPoll):
		}
	}
}

func seconds(since time.Time) float64 {
	return time.Since(since).Round(100 * time.Millisecond).Seconds()
}

// lay makes the directories of the run that are not there, and locks the run. They have the permissions of the shared one, since Flink's user
// may be another.
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
	r.dir = filepath.Join(shared, r.name)
	r.texts, r.pairs = filepath.Join(r.dir, "texts"), filepath.Join(r.dir, "pairs")
	r.mode = info.Mode().Perm()
	if err := r.make(r.dir); err != nil {
		return err
	}
	if r.lock, err = os.OpenFile(filepath.Join(r.dir, "lock"), os.O_RDWR|os.O_CREATE, r.mode&^0o111); err != nil {
		return fmt.Errorf("shared: %w", err)
	}
	if err := terminal.Lock(r.lock); errors.Is(err, syscall.EWOULDBLOCK) { // a file system may have no locks
		return fmt.Errorf("shared: another run does the same in %s: wait for it", r.dir)
	}
	for _, d := range []string{r.texts, r.pairs} {
		if err := r.make(d); err != nil {
			return err
		}
	}
	return nil
}

// make makes a directory, if it is not there.
func (r *run) make(dir string) error {
	err := os.Mkdir(dir, r.mode)
	if err == nil {
		err = os.Chmod(dir, r.mode)
	} else if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("shared: %w", err)
	}
	return nil
}

// empty makes a directory anew.
func (r *run) empty(dir string) error {
	return cmp.Or(os.RemoveAll(dir), r.make(dir))
}

// probe has Flink copy a word from a file to another, before much is written: within seconds that shows whether the directory is
// shared.
func (r *run) probe(ctx context.Context) error {
	for _, d := range []string{"given", "taken"} {
		if err := r.empty(filepath.Join(r.dir, d)); err != nil {
			return err
		}
	}
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

// clear removes what the run has laid down.
func (r *run) clear() error {
	err := os.RemoveAll(r.dir)
	_ = r.lock.Close()
	if err != nil {
		return fmt.Errorf("remove the files of a run that is over, which may be done by hand: %w", err)
	}
	return nil
}

// leave gives up the directory of a run that failed. It stays if there is something in it to go on from.
func (r *run) leave() error {
	if r.lock == nil {
		return nil
	}
	if files, err := committed(r.texts); err == nil && len(files) == 0 {
		return r.clear()
	}
	r.Log.Warn("what is done is kept: the same command goes on from there; remove the directory if you don't want that", "directory", r.dir)
	return r.lock.Close()
}

// work runs statements in a session, the last of which is a job.
func (r *run) work(ctx context.Context, properties map[string]string, statements []string) error {
	s, err := r.g.open(ctx, r.name, properties)
	if err != nil {
		return err
	}
	defer func() { _ = s.close(context.WithoutCancel(ctx)) }() // the gateway closes it by itself after some minutes
	for _, statement := range statements {
		if _, err := s.execute(ctx, statement); err != nil {
			return err
		}
	}
	return nil
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
