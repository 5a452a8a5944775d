package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// ownEngine is an engine that can be killed and started again over the same data.
type ownEngine struct {
	*engines.Engine
	data string
	pid  int
}

// ownEngineOf starts an engine for the test alone, whatever the environment names.
func ownEngineOf(t *testing.T, kind string) *ownEngine {
	t.Helper()
	e := engines.Own(t, kind)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", e.PID))
	if err != nil {
		t.Skip(err) // no Linux
	}
	o := &ownEngine{Engine: e, pid: e.PID}
	for arg := range bytes.SplitSeq(line, []byte{0}) {
		for begin, end := range map[string]string{"--data-dir=": "/data", "-Djava.io.tmpdir=": "/tmp"} {
			if rest, ok := strings.CutPrefix(string(arg), begin); ok {
				o.data = strings.TrimSuffix(rest, end)
			}
		}
	}
	if o.data == "" {
		t.Fatalf("the data of %s is not named in %q", kind, line)
	}
	return o
}

func (o *ownEngine) signal(sig syscall.Signal) error { return syscall.Kill(o.pid, sig) }

// restart starts the engine again where it has ended, and waits until it answers.
func (o *ownEngine) restart() error {
	u, err := url.Parse(o.URL)
	if err != nil {
		return err
	}
	var told bytes.Buffer
	var out []byte
	for range 30 { // a process that was killed takes its time to let go of its port
		script := filepath.Join("..", "engines", o.Kind+".sh")
		cmd := exec.Command("bash", script, "start", "--port", u.Port(), "--heap", "512m", "--data", o.data)
		cmd.Env = append(os.Environ(), strings.ToUpper(o.Kind)+"_API_KEY="+o.Key)
		told.Reset()
		cmd.Stderr = &told
		if out, err = cmd.Output(); err == nil {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("start %s again: %w: %.2000s", o.Kind, err, told.Bytes())
	}
	for word := range strings.FieldsSeq(string(out)) {
		if text, ok := strings.CutPrefix(word, "pid="); ok {
			o.pid, err = strconv.Atoi(text)
		}
	}
	return err
}

// authority signs the certificates of a sidecar.
type authority struct {
	cert, key string // files of the certificate that was issued last
	pool      *x509.CertPool
	root      *x509.Certificate
	signer    *ecdsa.PrivateKey
	serial    int64
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), pool: x509.NewCertPool(), serial: 1}
	var err error
	if a.signer, err = ecdsa.GenerateKey(elliptic.P256(), crand.Reader); err != nil {
		t.Fatal(err)
	}
	a.root = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(crand.Reader, a.root, a.root, &a.signer.PublicKey, a.signer)
	if err != nil {
		t.Fatal(err)
	}
	if a.root, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.root)
	return a
}

// issue writes a new certificate in place of the last.
func (a *authority) issue(t *testing.T) {
	a.serial++
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Error(err)
		return
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "sidecar"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * 30 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(crand.Reader, leaf, a.root, &key.PublicKey, a.signer)
	if err != nil {
		t.Error(err)
		return
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Error(err)
		return
	}
	blocks := map[string]*pem.Block{a.key: {Type: "PRIVATE KEY", Bytes: private}, a.cert: {Type: "CERTIFICATE", Bytes: der}}
	for file, block := range blocks {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Error(err)
		}
	}
}
