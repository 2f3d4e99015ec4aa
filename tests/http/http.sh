#!/bin/sh
# http.sh ECHO - the HTTP layer over http_echo, asked by curl: routes, keys, streams, limits, clients that go.
set -eu
echo_server=$1
command -v curl >/dev/null || { echo "SKIP: curl is missing"; exit 77; }
dir=$(mktemp -d)
mkfifo "$dir/in"
printf '# keys\nalice secret-one priority=5\nsecret-two\n' >"$dir/keys"
chmod 644 "$dir/keys"

begin() { # [KEYFILE]: starts a server, sets $url
    "$echo_server" "$@" <"$dir/in" >"$dir/port" 2>"$dir/err" &
    pid=$!
    exec 9>"$dir/in"
    for _ in $(seq 100); do [ -s "$dir/port" ] && break; sleep 0.05; done
    url=http://127.0.0.1:$(cat "$dir/port")
}
end() { # the server ends cleanly, and nothing is left
    exec 9>&-
    wait "$pid" || { echo "the server ended with $?"; cat "$dir/err"; exit 1; }
}
trap 'exec 9>&-; rm -rf "$dir"' EXIT
fails=0
check() { # NAME WANT GOT: GOT has WANT in it
    case $3 in
    *"$2"*) ;;
    *) echo "FAIL $1: wanted $2, got: $3"; fails=$((fails + 1)) ;;
    esac
}
post() { curl -s -m 20 -w ' %{http_code}' "$url$1" -d "$2"; }
chat() { post /v1/chat/completions "{\"messages\": [{\"role\": \"user\", \"content\": \"$1\"}]${2:-}}"; }

begin
check health '{"status":"ok"} 200' "$(curl -s -w ' %{http_code}' "$url/health")"
check models '"id":"echo:pirate"' "$(curl -s "$url/v1/models")"
check model '"id":"echo"' "$(curl -s "$url/v1/models/echo")"
check model-404 'echo, echo:pirate' "$(curl -s "$url/v1/models/gpt")"
check page '<p>page' "$(curl -s "$url/")"
check page-304 304 "$(curl -s -o /dev/null -w '%{http_code}' -H 'If-None-Match: "e"' "$url/")"
check page-head text/html "$(curl -sI "$url/")"
check route 404 "$(curl -s -w ' %{http_code}' "$url/nothing")"
check method 405 "$(curl -s -w ' %{http_code}' "$url/v1/chat/completions")"
check origin 403 "$(curl -s -w ' %{http_code}' -H 'Origin: http://evil.example' "$url/health")"
check other-name 403 "$(curl -s -w ' %{http_code}' -H 'Host: evil.example:80' "$url/v1/models")"
check by-name 200 "$(curl -s -w ' %{http_code}' -H 'Host: LocalHost:80' "$url/v1/models")"
check by-v6 200 "$(curl -s -w ' %{http_code}' -H 'Host: [::1]:80' "$url/v1/models")"
check own-origin 200 "$(curl -s -w ' %{http_code}' -H "Origin: $url" "$url/health")"
check chat '"content":"one two three"' "$(chat 'one two three')"
check chat-200 ' 200' "$(chat 'one two three')"
check length '"finish_reason":"length"' "$(chat 'one two three' ', "max_tokens": 2')"
check stream 'data: [DONE]' "$(chat 'one two three' ', "stream": true')"
check stream-word '"delta":{"content":"two "}' "$(chat 'one two three' ', "stream": true')"
check stream-usage '"completion_tokens":3' "$(chat 'one two three' ', "stream": true, "stream_options": {"include_usage": true}')"
check n '"index":1,"message":{"role":"assistant","content":"a b"' "$(chat 'a b' ', "n": 2')"
check tools '"arguments":"{\"city\": \"Bern\"}"' "$(chat call ', "tools": [{"type": "function", "function": {"name": "weather"}}]')"
check failed ' 500' "$(chat 'fail')"
check failed-stream ' 500' "$(chat 'fail' ', "stream": true')"
check failed-echo 'data: {"error"' "$(post /v1/completions '{"prompt": "fail", "echo": true, "stream": true}')"
check adapter '"model":"echo:pirate"' "$(chat 'a' ', "model": "pirate"')"
check completion '"text":"x y"' "$(post /v1/completions '{"prompt": "x y"}')"
check echo '"text":"x yx y"' "$(post /v1/completions '{"prompt": "x y", "echo": true}')"
check responses '"type":"output_text","text":"x y"' "$(post /v1/responses '{"input": "x y"}')"
check responses-stream 'event: response.completed' "$(post /v1/responses '{"input": "x y", "stream": true}')"
check embeddings '"embedding":[0.6' "$(post /v1/embeddings '{"input": "x"}')"
check tokenize '{"tokens":[1,2]}' "$(post /tokenize '{"content": "x"}')"
check bad-json 400 "$(post /v1/chat/completions '{')"
check unknown 'did you mean `stream`?' "$(post /v1/completions '{"prompt": "x", "steam": true}')"
head -c 70000 /dev/zero | tr '\0' ' ' >"$dir/large"
check large 413 "$(curl -s -w ' %{http_code}' "$url/v1/completions" --data-binary "@$dir/large")"
check metrics 'weft_http_answers_total{status="2xx"}' "$(curl -s "$url/metrics")"
# A client that goes: its work is cancelled, so the server ends at once below.
curl -s -m 1 "$url/v1/completions" -d '{"prompt": "slow a b c d e f g h i j k l m n o p q r s t u v w x y z", "max_tokens": 100}' >/dev/null || true
curl -s -m 1 "$url/v1/completions" -d '{"prompt": "slow a b c d e f g h i j k l m n o p q r s t u v w x y z", "max_tokens": 100, "stream": true}' >/dev/null || true
sleep 1
check gone 'echo_works 0' "$(curl -s "$url/metrics")"
# Many at once, on connections that are kept.
for _ in $(seq 8); do
    curl -s $(for _ in $(seq 20); do echo "$url/v1/completions"; done) -d '{"prompt": "a b c", "stream": true}' >"$dir/many" &
    many="${many:-} $!"
done
wait $many
check many 'data: [DONE]' "$(cat "$dir/many")"
# Memory that is short somewhere in the middle: 503, or an end of the stream, and the server goes on.
short=0
for n in $(seq 1 3 120); do
    for extra in '' ', "stream": true'; do
        echo "$n" >&9
        sleep 0.01
        got=$(chat 'one two three' "$extra" || true)
        case $got in
        *' 503') short=$((short + 1)); check "short-$n" '"code":"out_of_memory"' "$got" ;;
        *' 200' | *' 000') ;;
        *) check "short-$n" 'a status of 200 or 503' "$got" ;;
        esac
    done
done
echo 0 >&9
sleep 0.1
[ "$short" -ge 10 ] || { echo "FAIL short: only $short requests saw it"; fails=$((fails + 1)); }
check short-after '"content":"one two three"' "$(chat 'one two three')"
check short-gone 'echo_works 0' "$(curl -s "$url/metrics")"
# A request that never ends is shut down after two seconds, however slowly its bytes drip.
if command -v python3 >/dev/null; then
    check slowloris closed "$(python3 - "$url" <<'PY'
import socket, sys, time
host, port = sys.argv[1].split('//')[1].split(':')
s = socket.create_connection((host, int(port)))
s.sendall(b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n')
begin = time.time()
try:
    while time.time() - begin < 8:
        s.sendall(b'X-A: b\r\n')
        time.sleep(0.3)
        s.settimeout(0.01)
        try:
            if s.recv(1) == b'': break
        except socket.timeout: pass
except OSError: pass
print('closed' if time.time() - begin < 6 else 'still open')
PY
)"
    # A body that drips; a connection that is opened and left; one whose client closes its sending half while the answer is made.
    check slow-body closed "$(python3 - "$url" <<'PY'
import socket, sys, time
host, port = sys.argv[1].split('//')[1].split(':')
def connect():
    s = socket.create_connection((host, int(port)))
    s.settimeout(8)
    return s
def closes(s, drip):
    begin = time.time()
    try:
        while time.time() - begin < 8:
            if drip: s.sendall(b' ')
            s.settimeout(0.3)
            try:
                if s.recv(1) == b'': break
            except socket.timeout: pass
    except OSError: pass
    return time.time() - begin < 6
body = connect()
body.sendall(b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{')
print('closed' if closes(body, True) and closes(connect(), False) else 'still open')
half = connect()
text = b'{"prompt": "slow a b c d e f g h i j k l m n o p", "max_tokens": 100}'
half.sendall(b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % len(text) + text)
half.shutdown(socket.SHUT_WR)
time.sleep(2.5)
PY
)"
    check half-closed 'echo_works 0' "$(curl -s "$url/metrics")"
fi
# A port that is taken.
busy=$("$echo_server" "" "" "${url##*:}" </dev/null 2>&1 || true)
check port-in-use W1834 "$busy"
end
begin "$dir/keys"
check key-warning W1836 "$(cat "$dir/err")"
check no-key 401 "$(chat a)"
check wrong-key 401 "$(curl -s -w ' %{http_code}' -H 'Authorization: Bearer secret-onf' "$url/v1/models")"
check right-key 200 "$(curl -s -w ' %{http_code}' -H 'Authorization: Bearer secret-one' "$url/v1/models")"
check second-key 200 "$(curl -s -w ' %{http_code}' -H 'Authorization: Bearer secret-two' "$url/v1/models")"
check name-with-key 200 "$(curl -s -w ' %{http_code}' -H 'Host: weft.example' -H 'Authorization: Bearer secret-one' "$url/v1/models")"
check health-without 200 "$(curl -s -w ' %{http_code}' "$url/health")"
end
[ "$fails" = 0 ] && echo "all as expected"
exit "$fails"
