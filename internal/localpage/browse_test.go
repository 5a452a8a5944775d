package localpage

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/neardup/sidecar/internal/expect"
)

// TestBrowse: a browser is started with an address that leads to the key once.
func TestBrowse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the browser is a script in place of xdg-open")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$2\" > " + dir + "/new && mv " + dir + "/new " + dir + "/opened\n"
	expect.OK(t, os.WriteFile(filepath.Join(dir, "setsid"), []byte(script), 0o700)) //nolint:gosec // it is run
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":9")
	t.Setenv("SSH_CONNECTION", "")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	printed, ended := make(chan string, 1), make(chan error)
	go func() {
		ended <- Serve(ctx, 0, Page{Files: fstest.MapFS{}, API: http.NotFoundHandler(), Browse: true}, func(a string) { printed <- a })
	}()
	address := <-printed
	base, key, _ := strings.Cut(address, "#key=")
	var opened []byte
	for deadline := time.Now().Add(20 * time.Second); opened == nil && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		opened, _ = os.ReadFile(filepath.Join(dir, "opened")) // it comes
	}
	at := strings.TrimSpace(string(opened))
	if !strings.HasPrefix(at, base+"open/") || strings.Contains(at, key) {
		t.Fatalf("%q is opened, and %q is printed", at, address)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, c := range []struct {
		address, to string
		status      int
	}{{at[:len(at)-1], "", 401}, {at, "/#key=" + key, 303}, {at, "", 401}} {
		r := expect.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, c.address, nil))(t)
		reply := expect.Value(client.Do(r))(t)
		_ = reply.Body.Close()
		if reply.StatusCode != c.status || reply.Header.Get("Location") != c.to {
			t.Errorf("%s: %d to %q", c.address, reply.StatusCode, reply.Header.Get("Location"))
		}
	}
	client.CloseIdleConnections()
	stop()
	expect.OK(t, <-ended)
}
