package localpage

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"
)

var errNoKey = errors.New("open the full address that the command printed; the part after # is missing or wrong")

// browse opens an address in a browser, unless the command runs over SSH or without a desktop.
func browse(ctx context.Context, address string) {
	var program []string
	switch {
	case os.Getenv("SSH_CONNECTION") != "":
	case runtime.GOOS == "darwin":
		program = []string{"open"}
	case runtime.GOOS == "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case os.Getenv("DISPLAY")+os.Getenv("WAYLAND_DISPLAY") != "":
		program = []string{"setsid", "xdg-open"} // so Ctrl-C ends the command, but not the browser
	}
	if program == nil {
		return
	}
	// If this fails, the person can still open the address that the command prints.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program[0], append(program[1:], address)...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}

// redirect sends the browser that the command opens to the page, with the key. Other users of this machine can see the address that a browser is
// started with. So that address holds a ticket instead of the key. The ticket works once, within a minute.
func redirect(key, ticket string) http.HandlerFunc {
	var used atomic.Bool
	end := time.Now().Add(time.Minute)
	return func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.PathValue("ticket")), []byte(ticket)) != 1 || time.Now().After(end) || used.Swap(true) {
			Refuse(w, http.StatusUnauthorized, errNoKey)
			return
		}
		http.Redirect(w, r, "/#key="+key, http.StatusSeeOther)
	}
}
