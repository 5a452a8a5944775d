package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/neardup/sidecar/bench/internal/cost"
)

// bench is one run of this program.
type bench struct {
	programs, arguments []string
	folder              string
	rounds              int
}

// result is one run of a sidecar.
type result struct {
	cost.Cost
	disk      int64 // of temporary files, the most, in bytes
	clustered int   // documents that have a near-duplicate
	sum       [sha256.Size]byte
}

const head = "| file | documents | MB | program | wall, s | processor, s | MB/s per core | sketching alone | memory, MB | temporary disk, MB | documents in clusters |\n" +
	"|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"

// line is a result as a row of the table. size is that of the file, unpacked.
func (r result) line(program string, zipped bool, documents int, size int64, sketching time.Duration) string {
	file, mb := fmt.Sprintf("%d bytes a record", size/int64(documents)), float64(size)/1e6
	if zipped {
		file += ", gzipped"
	}
	alone := float64(documents) * sketching.Seconds() / r.Processor.Seconds()
	return fmt.Sprintf("| %s | %d | %.0f | %s | %.1f | %.1f | %.1f | %.0f %% | %d | %d | %d |", file, documents, mb, filepath.Base(program),
		r.Wall.Seconds(), r.Processor.Seconds(), mb/r.Processor.Seconds(), 100*alone, r.Memory>>20, r.disk>>20, r.clustered)
}

// takeTurns has all programs read a file, round after round, and returns the run of least processor time of each.
func (b *bench) takeTurns(ctx context.Context, file string) ([]result, error) {
	best := make([]result, len(b.programs))
	var first *result
	for range b.rounds {
		for i, program := range b.programs {
			r, err := b.cluster(ctx, program, file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", program, err)
			}
			if first == nil {
				first = &r
			}
			if r.sum != first.sum {
				return nil, fmt.Errorf("%s wrote other clusters than %s before", program, b.programs[0])
			}
			fmt.Fprintf(os.Stderr, "%s: %s: %.1f s, processor %.1f s, %d MB\n", filepath.Base(file), program, r.Wall.Seconds(), r.Processor.Seconds(), r.Memory>>20)
			if best[i].Processor == 0 || r.Processor < best[i].Processor {
				best[i] = r
			}
		}
	}
	return best, nil
}

// cluster runs a program once.
func (b *bench) cluster(ctx context.Context, program, file string) (r result, err error) {
	temporary, err := os.MkdirTemp(b.folder, "run-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(temporary)
	output := filepath.Join(temporary, "clusters.csv")
	arguments := append([]string{"cluster", "--input", file, "--output", output, "--report", "json", "--temp-dir", temporary}, b.arguments...)
	cmd := exec.CommandContext(ctx, program, arguments...)
	var report strings.Builder
	cmd.Stdout = &report
	if r.Cost, err = cost.Of(ctx, cmd, func(pid int) { r.disk = max(r.disk, openIn(pid, temporary)) }); err != nil {
		return r, err
	}
	var found struct{ Clustered int }
	if err := json.Unmarshal([]byte(report.String()), &found); err != nil {
		return r, err
	}
	r.clustered = found.Clustered
	r.sum, err = sumOf(output)
	return r, err
}

// openIn returns the bytes on disk of the files of a folder that a process has open, but for its output. Its temporary files have no name any more.
func openIn(pid int, folder string) (sum int64) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		name, _ := os.Readlink(link) // it may be closed by now
		var stat syscall.Stat_t
		if strings.HasPrefix(name, filepath.Join(folder, "neardup-")) && syscall.Stat(link, &stat) == nil {
			sum += stat.Blocks * 512
		}
	}
	return sum
}

// sumOf is the checksum of a file.
func sumOf(file string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(file)
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return [sha256.Size]byte(h.Sum(nil)), errors.Join(err, f.Close())
}

func cores() int { return runtime.GOMAXPROCS(0) }

// processorTime is what this process has taken so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it can't fail for itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
