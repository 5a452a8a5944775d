package server

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/neardup/sidecar/internal/config"
)

// sockets are what the service manager opened for us (LISTEN_FDS), by name.
type sockets map[string][]net.Listener

// passedSockets takes over the sockets that the service manager passed; none where it passed none.
func passedSockets() (sockets, error) {
	var passed sockets
	for _, file := range activation.Files(true) {
		socket, err := net.FileListener(file)
		_ = file.Close() // the listener has a descriptor of its own
		if err != nil {
			return nil, fmt.Errorf("the socket %s was passed and takes no connections: %w: pass one with ListenStream=", file.Name(), err)
		}
		if passed == nil {
			passed = sockets{}
		}
		passed[file.Name()] = append(passed[file.Name()], socket)
	}
	return passed, nil
}

// of returns the sockets for what has the name and the configured address: those with that name, or without a known name the
// one that is bound to the address.
func (s sockets) of(name, address string) []net.Listener {
	if list := s[name]; list != nil {
		return list
	}
	for _, list := range s {
		for _, socket := range list {
			if socket.Addr().String() == address {
				return []net.Listener{socket}
			}
		}
	}
	return nil
}

// drop closes the sockets of an endpoint that is given up.
func (s sockets) drop(d *endpoint) {
	for name, list := range s {
		s[name] = slices.DeleteFunc(list, func(socket net.Listener) bool {
			gone := d.has(socket)
			if gone {
				_ = socket.Close() // what is wrong with it does not matter any more
			}
			return gone
		})
	}
}

// systemd tells the service manager (NOTIFY_SOCKET) how things stand. Without one it does nothing.
type systemd struct{ log *slog.Logger }

func (m systemd) tell(states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		m.log.Warn("the service manager can't be told", "state", states[0], "error", err.Error())
	}
}

func (m systemd) ready(c *config.Config) {
	m.tell(daemon.SdNotifyReady, fmt.Sprintf("STATUS=serving %d engines by %d rules of %s", len(c.Engines), c.RuleCount(), c.File))
}

func (m systemd) reloading() {
	m.tell(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

func (m systemd) stopping() { m.tell(daemon.SdNotifyStopping, "STATUS=draining") }

// watched returns a channel that ticks as often as the service manager wants to hear from us, or nil if it does not.
func (m systemd) watched() (ticks <-chan time.Time, stop func()) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every <= 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(every / 2)
	return ticker.C, ticker.Stop
}

func (m systemd) alive() { m.tell(daemon.SdNotifyWatchdog) }
