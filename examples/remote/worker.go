// A remote worker in plain Go, with the standard library only. It speaks the protocol of docs/remote-workers.md:
//
//	WORKER_ID=go-1 WORKER_SECRET_FILE=go-1.secret ADDRESS=127.0.0.1:8000 go run worker.go
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	bodyMax     = 1 << 20 // bytes
	depthMax    = 64
	tolerance   = 300     // seconds that the clocks of both sides may differ
	requestsMax = 100_000 // that are remembered for so long
	capacity    = 10
)

// --- what it can do: a function for each type of task

// Failure is an error after which another attempt makes no sense.
type Failure struct{ text string }

func (f Failure) Error() string { return f.text }

// Call is one run of one task.
type Call struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Payload     json.RawMessage   `json:"payload"`
	Attempt     int               `json:"attempt"`
	Token       string            `json:"token"`
	Timeout     float64           `json:"timeout"`
	Tags        map[string]string `json:"tags"`
	Context     map[string]any    `json:"context"`
	CallbackURL string            `json:"callback_url"`
}

var tasks = map[string]func(context.Context, Call) (any, error){
	"upper": func(_ context.Context, call Call) (any, error) {
		var text string
		if err := json.Unmarshal(call.Payload, &text); err != nil {
			return nil, Failure{"upper takes a text"}
		}
		return strings.ToUpper(text), nil
	},
	"wait": func(ctx context.Context, call Call) (any, error) {
		var seconds float64
		if err := json.Unmarshal(call.Payload, &seconds); err != nil {
			return nil, Failure{"wait takes seconds"}
		}
		select {
		case <-time.After(time.Duration(seconds * float64(time.Second))):
			return "waited", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	},
}

// --- signatures

var name = regexp.MustCompile(`^[A-Za-z0-9._:@-]{1,128}$`)
var seconds = regexp.MustCompile(`^[0-9]{1,12}$`)

type keys struct {
	id           string
	call, answer []byte
}

func digest(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func keysOf(file string) (keys, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return keys{}, err
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != 32 {
		return keys{}, fmt.Errorf("%s must hold 64 hexadecimal digits", file)
	}
	id := hex.EncodeToString(digest(secret, "tickwork v1 id"))[:16]
	return keys{id, digest(secret, "tickwork v1 call"), digest(secret, "tickwork v1 answer")}, nil
}

func signature(key []byte, body []byte, lines ...string) string {
	sum := sha256.Sum256(body)
	text := strings.Join(append(append([]string{"v1"}, lines...), hex.EncodeToString(sum[:])), "\n")
	return "v1=" + hex.EncodeToString(digest(key, text))
}

// --- the worker

type reply struct {
	status     int
	body       []byte
	retryAfter string
	headers    map[string]string
}

// A request that came before: the same one again gets the same answer.
type request struct {
	signature string
	until     float64
	done      chan struct{}
	reply     reply
}

type worker struct {
	id      string
	secrets []keys // two while a secret is changed
	mutex   sync.Mutex
	seen    map[string]*request
	order   []string // their ids, the oldest first
	running map[string]*run
}

// A call that runs, and why it was stopped.
type run struct {
	cancel context.CancelFunc
	reason error
}

func (w *worker) stop(r *run, reason error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	r.reason = reason
	r.cancel()
}

func newReply(status int, body any) reply {
	text, err := json.Marshal(body)
	if err != nil {
		text, _ = json.Marshal(map[string]any{"status": "failed", "error": err.Error(), "retry": false})
	}
	return reply{status: status, body: text}
}

func refusal(status int, text string) reply {
	return newReply(status, map[string]string{"error": text})
}

// The keys with which a request is signed, or an error that says why it is refused.
func (w *worker) check(r *http.Request, body []byte) (keys, error) {
	head := func(name string) string { return r.Header.Get(name) }
	id, key, moment, call := head("Tickwork-Worker"), head("Tickwork-Key"), head("Tickwork-Time"), head("Idempotency-Key")
	if !name.MatchString(id) || !name.MatchString(call) || !seconds.MatchString(moment) {
		return keys{}, errors.New("the request is not signed")
	}
	found := w.secrets[0]
	for _, each := range w.secrets {
		if each.id == key {
			found = each
		}
	}
	wanted := signature(found.call, body, "call", r.Method, r.URL.RequestURI(), id, key, moment, call)
	if !hmac.Equal([]byte(head("Tickwork-Signature")), []byte(wanted)) {
		return keys{}, errors.New("the signature is wrong")
	}
	if id != w.id {
		return keys{}, errors.New("the request is for another worker")
	}
	at, _ := strconv.ParseFloat(moment, 64)
	if math.Abs(float64(time.Now().Unix())-at) > tolerance {
		return keys{}, errors.New("the request is of another time")
	}
	return found, nil
}

func (w *worker) signed(k keys, id string, r reply) reply {
	value := signature(k.answer, r.body, "answer", strconv.Itoa(r.status), w.id, k.id, id)
	r.headers = map[string]string{"Tickwork-Key": k.id, "Idempotency-Key": id, "Tickwork-Signature": value}
	return r
}

// Remember a request. Answers the one that came before under its id, if any, and whether there was room.
func (w *worker) remember(id string, entry *request) (*request, bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	now := float64(time.Now().Unix())
	for len(w.order) > 0 {
		first := w.seen[w.order[0]]
		if first != nil && first.until >= now {
			break
		}
		delete(w.seen, w.order[0])
		w.order = w.order[1:]
	}
	if before := w.seen[id]; before != nil {
		return before, true
	}
	if len(w.order) >= requestsMax {
		return nil, false
	}
	w.seen[id] = entry
	w.order = append(w.order, id)
	return nil, true
}

func (w *worker) answer(r *http.Request, body []byte) reply {
	k, err := w.check(r, body)
	if err != nil {
		return refusal(401, err.Error()) // not signed: it would fit somebody else's request
	}
	id, given := r.Header.Get("Idempotency-Key"), r.Header.Get("Tickwork-Signature")
	if r.URL.Path == "/health" {
		w.mutex.Lock()
		count := len(w.running)
		w.mutex.Unlock()
		return w.signed(k, id, newReply(200, map[string]any{"status": "ok", "running": count, "capacity": capacity}))
	}
	at, _ := strconv.ParseFloat(r.Header.Get("Tickwork-Time"), 64)
	entry := &request{signature: given, until: at + tolerance, done: make(chan struct{})}
	before, room := w.remember(id, entry)
	if !room {
		full := refusal(429, "too many calls")
		full.retryAfter = "60"
		return w.signed(k, id, full)
	}
	if before != nil {
		if before.signature != given {
			return refusal(401, "another request came under this idempotency key")
		}
		<-before.done
		return before.reply
	}
	entry.reply = w.signed(k, id, w.act(r.URL.Path, body))
	close(entry.done)
	return entry.reply
}

func (w *worker) act(path string, body []byte) reply {
	var call Call
	if tooDeep(body) {
		return refusal(400, fmt.Sprintf("the body is nested more than %d levels deep", depthMax))
	}
	if err := json.Unmarshal(body, &call); err != nil || call.Token == "" {
		return refusal(400, "the body is not what the protocol says")
	}
	if path == "/cancel" {
		return w.cancel(call.Token)
	}
	return w.execute(call)
}

func (w *worker) execute(call Call) reply {
	task := tasks[call.Type]
	if task == nil {
		return refusal(404, "no such type of task here")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	this := &run{cancel: cancel}
	if call.Timeout > 0 {
		limit := time.Duration(call.Timeout * float64(time.Second))
		defer time.AfterFunc(limit, func() { w.stop(this, errors.New("timed out")) }).Stop()
	}
	w.mutex.Lock()
	if len(w.running) >= capacity {
		w.mutex.Unlock()
		busy := refusal(429, "all slots are busy")
		busy.retryAfter = "1"
		return busy
	}
	w.running[call.Token] = this
	w.mutex.Unlock()
	result, err := task(ctx, call)
	w.mutex.Lock()
	delete(w.running, call.Token)
	if err != nil && this.reason != nil {
		err = this.reason
	}
	w.mutex.Unlock()
	if err != nil {
		var final Failure
		return newReply(200, map[string]any{"status": "failed", "error": err.Error(), "retry": !errors.As(err, &final)})
	}
	return newReply(200, map[string]any{"status": "completed", "result": result})
}

func (w *worker) cancel(token string) reply {
	w.mutex.Lock()
	this := w.running[token]
	w.mutex.Unlock()
	if this == nil {
		return newReply(200, map[string]string{"status": "unknown"})
	}
	w.stop(this, Failure{"cancelled"})
	return newReply(200, map[string]string{"status": "cancelled"})
}

func tooDeep(body []byte) bool {
	depth, inText := 0, false
	for i := 0; i < len(body); i++ {
		switch {
		case inText && body[i] == '\\':
			i++
		case body[i] == '"':
			inText = !inText
		case inText:
		case body[i] == '[' || body[i] == '{':
			if depth++; depth > depthMax {
				return true
			}
		case body[i] == ']' || body[i] == '}':
			depth--
		}
	}
	return false
}

func (w *worker) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	methods := map[string]string{"/execute": "POST", "/cancel": "POST", "/health": "GET"}
	send := func(r reply) {
		out.Header().Set("Content-Type", "application/json")
		if r.retryAfter != "" {
			out.Header().Set("Retry-After", r.retryAfter)
		}
		for name, value := range r.headers {
			out.Header().Set(name, value)
		}
		out.WriteHeader(r.status)
		_, _ = io.Copy(out, bytes.NewReader(r.body))
	}
	if methods[r.URL.Path] != r.Method {
		send(refusal(404, "no such path here"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, bodyMax))
	if err != nil {
		send(refusal(413, fmt.Sprintf("the body is larger than %d bytes, or was cut short", bodyMax)))
		return
	}
	send(w.answer(r, body))
}

func main() {
	w := &worker{id: os.Getenv("WORKER_ID"), seen: map[string]*request{}, running: map[string]*run{}}
	if w.id == "" {
		w.id = "go-1"
	}
	for _, variable := range []string{"WORKER_SECRET_FILE", "WORKER_OLD_SECRET_FILE"} {
		if file := os.Getenv(variable); file != "" {
			k, err := keysOf(file)
			if err != nil {
				log.Fatal(err)
			}
			w.secrets = append(w.secrets, k)
		}
	}
	if len(w.secrets) == 0 {
		log.Fatal("WORKER_SECRET_FILE must name the file with the secret of this worker")
	}
	address := os.Getenv("ADDRESS")
	if address == "" {
		address = "127.0.0.1:8000"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("worker %s listens on %s", w.id, listener.Addr())
	server := &http.Server{Handler: w, ReadTimeout: 30 * time.Second}
	log.Fatal(server.Serve(listener))
}
