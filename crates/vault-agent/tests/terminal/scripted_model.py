"""A model on loopback that speaks OpenAI's Chat Completions and says what a script says, one reply a request.

A reply is a text, a list of calls (tool, arguments), or `Silent(text)`: it says the text and then nothing more, until
the client goes.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 7  # characters of a delta: nothing is to depend on where they fall


class Silent(str):
    """A reply that does not end."""


class ScriptedModel:
    """The server, for as long as a `with` block runs."""

    def __init__(self, replies):
        self.replies, self.calls, self.done = list(replies), 0, threading.Event()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                reply = model.replies.pop(0) if model.replies else "(the script is at its end)"
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                try:
                    for chunk in model.chunks(reply):
                        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                    self.wfile.flush()
                    if isinstance(reply, Silent):
                        model.done.wait()
                    else:
                        self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    pass  # the client has gone

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.server.shutdown()
        self.server.server_close()

    def chunks(self, reply):
        """The chunks of a reply."""

        def chunk(delta, finish=None):
            return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        if isinstance(reply, str):
            for start in range(0, len(reply), PIECE):
                yield chunk({"content": reply[start : start + PIECE]})
            if isinstance(reply, Silent):
                return
            yield chunk({}, "stop")
        else:
            calls = []
            for index, (tool, arguments) in enumerate(reply):
                self.calls += 1
                function = {"name": tool, "arguments": json.dumps(arguments)}
                calls.append({"index": index, "id": f"call_{self.calls}", "type": "function", "function": function})
            yield chunk({"tool_calls": calls})
            yield chunk({}, "tool_calls")
        yield {"choices": [], "usage": {"prompt_tokens": 1200, "completion_tokens": 34, "total_tokens": 1234}}
