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

// browse opens an address in a browser, if this machine has one and a person is in front of it.
func browse(ctx context.Context, address string) {
	var program []string
	switch {
	case os.Getenv("SSH_CONNECTION") != "":
	case runtime.GOOS == "darwin":
		program = []string{"open"}
	case runtime.GOOS == "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case os.Getenv("DISPLAY")+os.Getenv("WAYLAND_DISPLAY") != "":
		program = []string{"setsid", "xdg-open"} // Ctrl-C then ends the command, and not the browser
	}
	if program == nil {
		return
	}
	// If it fails, the person has the address that the command prints.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program[0], append(program[1:], address)...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}

// redirect leads the browser that the command opens to the page with its key. Other users of this machine can read the address that a browser is
// started with. So it holds a ticket in place of the key, which works once, in the first minute.
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
