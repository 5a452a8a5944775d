package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
	"github.com/neardup/sidecar/internal/rule"
)

// smallDisk mounts a small file system in memory until the test ends, and returns its directory. The test is skipped if mounting is not allowed. A shell
// unmounts it once the engine on it has ended, even if the test's process is killed.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	dir := must(os.MkdirTemp("", "neardup-disk-"))(t)
	cmd := exec.Command("sh", "-c", `trap '' INT HUP TERM
		mount -t tmpfs -o "size=$2m,mode=755" tmpfs "$1" || { rmdir "$1"; exit 1; }
		echo mounted; read -r _
		for i in $(seq 300); do umount "$1" 2>/dev/null && break; sleep 0.1; done
		rmdir "$1" 2>/dev/null || { umount -l "$1"; rmdir "$1"; }`, "sh", dir, fmt.Sprint(megabytes))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var why bytes.Buffer
	cmd.Stderr = &why
	hold, out := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
	check(t, cmd.Start())
	if _, err := io.ReadFull(out, make([]byte, len("mounted\n"))); err != nil {
		_ = cmd.Wait()
		t.Skipf("a small disk needs the right to mount: %s", why.String())
	}
	t.Cleanup(func() {
		_ = hold.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("unmount %s: %v: %s", dir, err, why.String())
		}
	})
	return dir
}

// roomOn returns how many bytes are free.
func roomOn(t *testing.T, dir string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	check(t, syscall.Statfs(dir, &s))
	return int64(s.Bavail) * s.Bsize
}

// TestFullDisk fills the engine's disk while documents are written. The sidecar answers as the engine does, what the engine accepted is there
// with the right sketch, and writes go on when there is room again. Typesense stops answering when its disk is full; with a limit below that
// it refuses.
func TestFullDisk(t *testing.T) {
	t.Run("typesense", func(t *testing.T) { fillDisk(t, engines.Typesense, false) })
	if !soaking() {
		return
	}
	t.Run("typesense with a limit", func(t *testing.T) {
		t.Setenv("TYPESENSE_DISK_USED_MAX_PERCENTAGE", "95")
		fillDisk(t, engines.Typesense, true)
	})
	t.Run("elasticsearch", func(t *testing.T) { fillDisk(t, engines.Elasticsearch, false) })
	t.Run("opensearch", func(t *testing.T) { fillDisk(t, engines.OpenSearch, false) })
}

func fillDisk(t *testing.T, kind string, limited bool) {
	const index = "disk-1"
	disk, elsewhere := smallDisk(t, 300), os.TempDir()
	t.Setenv("TMPDIR", disk) // for the engine's data alone
	e := engines.Own(t, kind)
	t.Setenv("TMPDIR", elsewhere)
	relay, direct := inject.Start(t, e.URL), api{e, e.URL}
	d := running(t, config(t, e, setup{match: "disk-*", urls: []string{relay.URL()}}))
	through := api{e, fmt.Sprint("http://", d.await(t, "listening", 1)[0]["addr"])}
	list, stored := documents(t), map[string]bool{}
	through.create(t, index, list[:60]...)
	for _, d := range list[:60] {
		stored[d.ID] = true
	}
	bulk, patience := direct.words(t).bulk(index), 3*time.Second
	if !direct.typesense() {
		bulk, patience = "/_bulk?timeout=1s", within // it waits for a shard that failed, and always answers
	}
	ballast := filepath.Join(disk, "ballast")
	file := must(os.Create(ballast))(t)
	for zeros := make([]byte, 1<<20); roomOn(t, disk) > 4<<20; {
		if _, err := file.Write(zeros); err != nil {
			break
		}
	}
	check(t, file.Close())
	if limited { // it looks at its disk every few seconds
		line := direct.words(t).line(index, "early", must(json.Marshal(list[60]))(t))
		if !until(func() bool {
			return strings.Contains(string(call(t, e, "POST", through.base+bulk, line).body), "OUT_OF_DISK")
		}) {
			t.Fatal("the engine does not see that its disk is full")
		}
	}

	// Bulks of 20 documents, some of them with a long text, until the engine has refused some or answers no more.
	pad := strings.Repeat("the harbour was full and no boat could enter it any more ", 2000)
	all := []string{"early"}
	statuses, hangs := map[int]int{}, false
	for bulks := 0; len(all) < 40+len(stored) && !hangs; bulks++ {
		if bulks == 200 {
			t.Fatalf("nothing was refused with %d bytes left", roomOn(t, disk))
		}
		var lines strings.Builder
		ids := make([]string, 20)
		for i := range ids {
			d := list[(bulks*20+i)%len(list)]
			d.ID = fmt.Sprintf("full-%d-%d", bulks, i)
			if i%4 == 0 {
				d.Body += pad
			}
			ids[i] = d.ID
			lines.WriteString(through.words(t).line(index, d.ID, must(json.Marshal(d))(t)))
		}
		all = append(all, ids...)
		relay.Forget()
		got := attempt(t, e, through.base, sending{method: "POST", path: bulk, body: lines.String()}, patience)
		statuses[got.status]++
		if sent := relay.Seen(); len(sent) == 0 || !sent[len(sent)-1].Whole {
			t.Fatalf("bulk %d never reached the engine: %v", bulks, got)
		}
		hangs = got.err != nil && roomOn(t, disk) < 1<<20
		if got.err == nil {
			for _, id := range accepted(t, through, got.reply, ids) {
				stored[id] = true
			}
		}
	}
	t.Logf("statuses of bulks %v: %d documents sent, %d accepted", statuses, len(all)-1, len(stored)-60)

	// The engine and the sidecar say the same.
	method, path, body := through.words(t).search(index, "*", 0, 10, "", "")
	ask := sending{method: method, path: path, body: body}
	alone := attempt(t, e, e.URL, ask, patience)
	if got := attempt(t, e, through.base, ask, patience); got.status != alone.status || got.status/100 != 2 && !bytes.Equal(got.body, alone.body) {
		t.Errorf("a search while the disk is full: %v, of the engine: %v", got, alone)
	}
	t.Logf("searches while the disk is full: %d", alone.status)

	check(t, os.Remove(ballast))
	if hangs { // such an engine works again when it has been restarted
		e.Restart(t)
	}
	// A shard that is just coming back answers no look-up of ours, so the first document may be written without a sketch.
	r, back := ruleOfTests(t), list[70]
	line := through.words(t).line(index, back.ID, must(json.Marshal(back))(t))
	written := until(func() bool {
		if !direct.typesense() { // the engine has given the shard up, and takes it again when it is told to
			call(t, e, "POST", e.URL+"/_cluster/reroute?retry_failed=true", "")
		}
		got := attempt(t, e, through.base, sending{method: "POST", path: bulk, body: line}, patience)
		if !got.ok() || len(accepted(t, through, got.reply, []string{back.ID})) == 0 {
			return false
		}
		there := attempt(t, e, e.URL, sending{method: "GET", path: direct.words(t).document(index, back.ID)}, patience)
		return there.ok() && rule.HasSketch(there.body)
	})
	if !written {
		t.Fatal("there is room again, and nothing is written with a sketch")
	}
	stored[back.ID] = true
	_, metrics := statusAt(t, d.base(t, "")+"/metrics")
	t.Log(strings.Join(regexp.MustCompile(`(?m)^neardup_documents_total.*`).FindAllString(string(metrics), -1), " "))
	if p := through.search(t, index, "*", 0, 10, ""); len(p.ids) != 10 || !strings.HasPrefix(p.outcome, "collapsed") {
		t.Errorf("a search when there is room again: %s %v", p.outcome, p.ids)
	}
	lost := 0
	for id := range stored {
		all = append(all, id)
	}
	for _, id := range all { // what was not accepted may be there too
		got := attempt(t, e, e.URL, sending{method: "GET", path: direct.words(t).document(index, id)}, within)
		if !got.ok() {
			if stored[id] {
				if lost++; lost < 5 {
					t.Errorf("%s was accepted and is lost: %v", id, got)
				}
			}
			continue
		}
		if why := wrong(r, got.body); why != "" || !rule.HasSketch(got.body) {
			t.Errorf("%s has no sketch or a wrong one: %s", id, why)
		}
	}
}

// accepted returns which documents of a bulk the engine says it has stored.
func accepted(t *testing.T, a api, got reply, ids []string) (stored []string) {
	t.Helper()
	if got.status >= 300 {
		if !inShape(gotten{reply: got}) {
			t.Errorf("a refusal in no shape of the engine's: %d %.300s", got.status, got.body)
		}
		return nil
	}
	if a.typesense() {
		for i, line := range strings.Split(strings.TrimSpace(string(got.body)), "\n") {
			if strings.Contains(line, `"success":true`) {
				stored = append(stored, ids[i])
			}
		}
		return stored
	}
	var result struct {
		Items []map[string]struct{ Status int }
	}
	decode(t, got.body, &result)
	for i, item := range result.Items {
		for _, one := range item {
			if one.Status < 300 {
				stored = append(stored, ids[i])
			}
		}
	}
	return stored
}
